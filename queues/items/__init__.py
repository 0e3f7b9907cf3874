"""Item states inside one transaction: ready, delayed, leased, dead, and their counters."""
