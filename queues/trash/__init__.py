"""Trash: what was deleted, purged or popped, kept for undo until its deadline."""
