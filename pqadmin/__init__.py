"""pqadmin: the operations site for named, durable, double-ended priority queues."""

__version__ = "0.1.0"
