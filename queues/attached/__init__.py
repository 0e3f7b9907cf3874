"""Attached queues: used here, while their items lie in a subspace that others write by FoundationDB's recipes.

Nothing of ours is written among the items but items, in the recipe's own form. Under our own root lie only a config,
a change key, and totals of what we did ourselves.
"""
