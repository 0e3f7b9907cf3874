"""Limits of requests: bodies, rates of messages, and places of addresses and people."""
