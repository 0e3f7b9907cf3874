"""The command line: one management command a verb, and what commands share."""
