"""Push forms, for one item and for many."""
