"""Serving: batches of concurrent requests in a process, and staging between processes."""
