"""Audit: the record of all actions of people."""
