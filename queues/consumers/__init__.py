"""Consumers: processes that take items from a queue, as their heartbeats tell."""
