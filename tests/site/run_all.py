"""Run every check and every suite, then say which failed; `make test` is this.

The browser suite runs in a process of its own: Playwright and the other tests each want the event loop. It is the
longest single process, so it starts first, beside the checks and then the other tests, which share all processors file
by file. Not so on a cluster, of which there is one, emptied by the tests on it: there one test runs at a time.
Without a Chromium it is not run, which is a failure only where PQ_REQUIRE_BROWSER=1.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sysconfig.get_path("scripts"))
#: The first that is found; the one without windows of its own uses a fifth less of the processor.
CHROMIUM = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHECKS: dict[str, list[str]] = {
    "style": ["ruff", "check", "."],
    "format": ["ruff", "format", "--check", "."],
    "types": ["mypy"],
    "import directions": ["lint-imports", "--no-cache"],
}
#: A file system in memory, where flushes cost nothing, and the bytes that have to be free on it.
MEMORY, ROOM = Path("/dev/shm"), 4_000_000_000
SCRIPTS = ["tsc", "--project", "tests/site/javascript"]
TESTS = ["pytest", "--ignore=tests/browser"]
SIDE_BY_SIDE = ["-n", "auto", "--dist", "loadfile"]
BROWSER = ["pytest", "tests/browser"]


def main() -> int:
    """Return 0 if everything passed."""
    sys.path.insert(0, str(ROOT))
    from tests import cluster

    if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free >= ROOM:
        os.environ.setdefault("TMPDIR", str(MEMORY))
    environment, together = browser(), not cluster.find().url
    tests = TESTS + SIDE_BY_SIDE if together else TESTS
    if environment is not None and together:
        with beside("browser tests", BROWSER, environment) as done:
            failed = checks() + ([] if run("tests", tests) else ["tests"])
        passed = all(done)
    else:
        failed = checks() + ([] if run("tests", tests) else ["tests"])
        passed = environment is None or run("browser tests", BROWSER, environment)
    failed += [] if passed else ["browser tests"]
    if environment is None:
        sys.stdout.write("\nbrowser suite not run: no Chromium was found, and Playwright could not download one\n")
        if os.environ.get("PQ_REQUIRE_BROWSER") == "1":
            failed.append("browser tests (PQ_REQUIRE_BROWSER=1)")
    sys.stdout.write(f"\nFAILED: {', '.join(failed)}\n" if failed else "\nAll checks and suites are green.\n")
    return 1 if failed else 0


def checks() -> list[str]:
    """Run every check; return the names of those that failed."""
    failed = [name for name, command in CHECKS.items() if not run(name, command)]
    if shutil.which(SCRIPTS[0]):
        failed += [] if run("scripts", SCRIPTS) else ["scripts"]
    else:
        sys.stdout.write("\nscripts not checked: no tsc was found (Debian's package node-typescript)\n")
        failed += ["scripts (PQ_REQUIRE_TSC=1)"] if os.environ.get("PQ_REQUIRE_TSC") == "1" else []
    return failed


def run(name: str, command: list[str], environment: dict[str, str] | None = None) -> bool:
    """Run one command with its output shown, and say how long it took."""
    announce(name, command)
    begun = time.monotonic()
    program = BIN / command[0] if (BIN / command[0]).exists() else command[0]
    done = subprocess.run([program, *command[1:]], cwd=ROOT, env=os.environ | (environment or {}), check=False)
    return told(name, done.returncode == 0, begun)


@contextmanager
def beside(name: str, command: list[str], environment: dict[str, str]) -> Iterator[list[bool]]:
    """Run one command beside what is done meanwhile; then show its output, and say whether it passed."""
    passed: list[bool] = []
    begun = time.monotonic()
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            [BIN / command[0], *command[1:]],
            cwd=ROOT,
            env=os.environ | environment,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            yield passed
            process.wait()
        finally:
            process.terminate()
            process.wait()
        announce(name, command)
        output.seek(0)
        shutil.copyfileobj(output, sys.stdout)
        passed.append(told(name, process.returncode == 0, begun))


def announce(name: str, command: list[str]) -> None:
    """Say what runs."""
    sys.stdout.write(f"\n== {name}: {' '.join(command)}\n")
    sys.stdout.flush()


def told(name: str, passed: bool, begun: float) -> bool:
    """Say how it went, and how long it took."""
    sys.stdout.write(f"== {name}: {'ok' if passed else 'FAILED'}, {time.monotonic() - begun:.0f} s\n")
    sys.stdout.flush()
    return passed


def browser() -> dict[str, str] | None:
    """Return the variables that tell the browser tests which Chromium to use; None if there is none."""
    if "PQ_CHROMIUM" in os.environ:
        return {}
    for name in CHROMIUM:
        if path := shutil.which(name):
            return {"PQ_CHROMIUM": path}
    installed = subprocess.run([BIN / "playwright", "install", "chromium"], capture_output=True, check=False)
    return {} if installed.returncode == 0 else None


if __name__ == "__main__":
    sys.exit(main())
