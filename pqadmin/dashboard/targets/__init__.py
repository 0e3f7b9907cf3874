"""Targets of queues: on the settings of one, by pattern, and how queues stand."""
