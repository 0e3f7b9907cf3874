"""Targets of queues: on the settings of one, by pattern, and on the page of a queue."""
