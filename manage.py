#!/usr/bin/env python3
"""Run a pqadmin command; the same as `pqadmin` on the command line."""

from pqadmin.cli import main

if __name__ == "__main__":
    main()
