"""Search for items in all queues at once."""
