"""The history page and its chart data."""
