"""What measurements share: callers, rounds, running sites, viewers and the report."""
