"""The command palette and the sheet of keys."""
