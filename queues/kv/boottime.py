"""Elapsed time of this machine: counts from its start, through suspension, whatever its wall clock is set to."""

import time
from functools import partial
from pathlib import Path

from queues.kv.port import Count

#: Seconds since this machine was started; where there is no such clock, seconds that only ever grow.
boottime = partial(time.clock_gettime, getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def _boot() -> str:
    """Return what identifies this start of the machine; "" on systems that do not tell."""
    try:
        return _BOOT_ID.read_text("ascii").strip()
    except (OSError, ValueError):
        return ""


_boot_id = _boot()


def count() -> Count:
    """Return the machine's count, the same one in every process on it."""
    return Count(epoch=_boot_id, micros=int(boottime() * 1e6))
