"""`python -m pqadmin` is `pqadmin`."""

from pqadmin.cli import main

main()
