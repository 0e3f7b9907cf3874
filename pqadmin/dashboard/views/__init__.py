"""One module per page; `acts` has what changes something."""
