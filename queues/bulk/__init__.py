"""Bulk jobs: one action on all items that match, run in chunks with progress and cancel."""
