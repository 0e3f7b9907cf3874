"""Items: lists, the item page, and actions on items."""
