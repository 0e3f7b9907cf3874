"""The overview of all queues."""
