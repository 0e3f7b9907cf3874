"""Catalog: the names of queues, their configs, and the record of the store itself."""
