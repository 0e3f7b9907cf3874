"""Item files: NDJSON and CSV, read and written as streams."""
