"""Pages: what the pages of all features share."""
