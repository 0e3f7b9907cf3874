"""Migrations of the dashboard's own tables."""
