"""Status of queues, consistent at one read version."""
