"""Status: what screens read of queues, consistent at one read version."""
