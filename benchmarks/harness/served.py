"""`pqadmin serve` for `benchmarks.sockets`: it tells how often it read its store, and can be profiled.

Every half second it writes the file `reads` of the folder that PQADMIN_DATA names anew: one line, of the seconds of the
machine's monotonic clock and the key-value reads so far. With BENCHMARK_PROFILE set the server's main thread runs under
cProfile: its statistics go to the file that it names.
"""

import cProfile
import os
import sys
import threading
import time
from pathlib import Path

#: Seconds between lines.
_EVERY = 0.5


def _tell(path: Path) -> None:
    from pqadmin.store import get_store

    while True:
        time.sleep(_EVERY)
        try:
            reads = get_store().context.kv.reads()  # only the tests and this ask for it
        except Exception:  # the store is not open yet, or closed already
            continue
        partial = path.with_suffix(".partial")
        partial.write_text(f"{time.monotonic()} {reads}")
        partial.rename(path)


def main() -> None:
    """Serve."""
    from pqadmin.cli import main as run

    path = Path(os.environ["PQADMIN_DATA"]) / "reads"
    threading.Thread(target=_tell, args=(path,), daemon=True).start()
    sys.argv[0] = "pqadmin"
    profiled = os.environ.get("BENCHMARK_PROFILE")
    if not profiled:
        run()
        return
    profile = cProfile.Profile()
    try:
        profile.runcall(run)
    finally:
        profile.dump_stats(profiled)


if __name__ == "__main__":
    main()
