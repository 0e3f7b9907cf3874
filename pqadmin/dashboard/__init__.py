"""Pages for operators: overview, queue, item, audit, trash, and the acts on them.

Server-rendered and complete without JavaScript. Talks to the store through `queues` and to the process's monitor for
last known numbers; never to `queues.kv`.
"""
