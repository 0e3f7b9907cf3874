"""Processes whose wall clock is wrong by so many seconds; monotonic and boot time are right. Needs a C compiler."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

_SOURCE = Path(__file__).with_name("wall_clock.c")


def build(folder: Path) -> Path:
    """Compile the library that is preloaded, into this folder; raise `FileNotFoundError` without a compiler."""
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None:
        raise FileNotFoundError("no C compiler (cc, gcc or clang) on the PATH: wall clocks cannot be shifted")
    library = folder / "wall_clock.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, _SOURCE], check=True)
    return library


def variables(library: Path, shift: int) -> Mapping[str, str]:
    """Return the environment variables of a process whose wall clock is ahead by so many seconds."""
    return {"LD_PRELOAD": str(library), "WALL_CLOCK_SHIFT": str(shift)} if shift else {}
