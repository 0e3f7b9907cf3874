"""Text of errors for the log.

Messages of other errors than our own may hold values, and are left out.
"""

import traceback

from queues.errors import QueueError, StoreError


def said(error: BaseException) -> str:
    """Return the message of an error of ours, else the error's class and place."""
    return str(error) if isinstance(error, StoreError | QueueError) else place_of(error)


def place_of(error: BaseException) -> str:
    """Return the error's class and place. Its message is not logged, as it may hold a value."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {frames[-1].filename}:{frames[-1].lineno} {frames[-1].name}" if frames else ""
    return f"{type(error).__name__}{where}"
