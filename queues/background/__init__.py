"""Background services: what one elected process does for a store, such as sweeping."""
