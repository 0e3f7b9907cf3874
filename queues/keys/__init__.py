"""Keys: the layout of every key in the store. Only this package builds or parses keys."""
