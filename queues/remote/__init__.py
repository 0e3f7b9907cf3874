"""Stores behind a server: the verbs of queues as requests to the HTTP API of a pqadmin site."""
