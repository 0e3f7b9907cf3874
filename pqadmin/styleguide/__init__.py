"""The style guide: every component with hostile and extreme data."""
