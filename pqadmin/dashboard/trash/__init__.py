"""The trash pages."""
