"""The queue page, its settings, and actions on whole queues."""
