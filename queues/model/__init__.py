"""Model: values without a store, such as items, priorities, names, ids and configs."""
