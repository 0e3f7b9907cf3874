"""What the API tells of itself: its schema, its reference and its page."""
