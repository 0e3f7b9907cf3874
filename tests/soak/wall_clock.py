"""Processes whose wall clock is wrong, and is set while they run; other clocks are right. Needs a C compiler."""

import shutil
import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path

_LONG = struct.Struct("l")
_SOURCE = Path(__file__).with_name("wall_clock.c")


def build(folder: Path) -> Path:
    """Compile the library that is preloaded, into this folder; raise `FileNotFoundError` without a compiler."""
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None:
        raise FileNotFoundError("no C compiler (cc, gcc or clang) on the PATH: wall clocks cannot be shifted")
    library = folder / "wall_clock.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, _SOURCE], check=True)
    return library


def set_ahead(file: Path, seconds: int) -> None:
    """Set the wall clock of all processes that go by this file, running ones too, ahead by so many seconds."""
    if not file.exists():
        file.write_bytes(bytes(_LONG.size))
    with file.open("r+b") as shift:
        shift.write(_LONG.pack(seconds))


def variables(library: Path, file: Path) -> Mapping[str, str]:
    """Return the environment variables of a process whose wall clock goes by this file."""
    return {"LD_PRELOAD": str(library), "WALL_CLOCK_FILE": str(file)}
