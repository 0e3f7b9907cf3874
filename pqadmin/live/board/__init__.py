"""The board: rows, rates, health and sums of all queues, as the monitor last read them."""
