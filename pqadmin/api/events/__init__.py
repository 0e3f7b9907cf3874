"""Server-sent events: the feed of what changed, and the streams that send it."""
