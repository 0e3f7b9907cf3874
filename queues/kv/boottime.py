"""Elapsed time of this machine: counts from its start, through suspension, whatever its wall clock is set to."""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from queues.kv.port import Count

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
#: By how much the clocks of a container are moved that has a time namespace of its own.
_OFFSETS = Path("/proc/self/timens_offsets")


def _clock() -> Callable[[], float]:
    """Return the seconds since this machine was started, the same in all its containers."""
    clock = partial(time.clock_gettime, getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
    try:
        moved = {name: int(seconds) for name, seconds, _ in map(str.split, _OFFSETS.read_text().splitlines())}
        offset = moved["boottime"]
    except (OSError, ValueError, KeyError):  # another system
        return clock
    return (lambda: clock() - offset) if offset else clock


#: Seconds since this machine was started; where there is no such clock, seconds that only ever grow.
boottime = _clock()


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
