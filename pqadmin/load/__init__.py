"""Load: producers and workers at set rates, in processes of their own, through the public library.

`plan` says which queues there are and what is pushed to them, `pace` when, `process` does it, `run` starts, watches
and stops the processes. The site knows nothing of any of it: to the site this is other people's traffic.
"""
