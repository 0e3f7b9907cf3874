"""The audit pages."""
