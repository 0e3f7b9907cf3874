"""pqadmin: the operations site for named, durable, double-ended priority queues."""

__version__ = "0.2.0"
