"""Run every check and every suite, then say which failed; `make test` is this.

The browser suite runs in processes of its own: Playwright and the other tests each want the event loop. Its tests
wait as long as they work, so it runs two files at a time, beside the checks and then the other tests, which share all
processors file by file. Not so on a cluster, of which there is one, emptied by the tests on it: there one test runs at
a time.
Without a Chromium it is not run, which is a failure only where PQ_REQUIRE_BROWSER=1.

Up to three tests of a suite that failed are run a second time, alone: a machine that paused for a second is no
fault of the product. A test that passes only then is named at the end, as one to repair.
"""

import json
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
#: More than two Chromiums on two processors keep each other waiting.
BROWSERS = ["-n", "2", "--dist", "loadfile"]
#: The most failed tests of a suite that are run a second time; more are no accident.
SECOND_TRIES = 3


def main() -> int:
    """Return 0 if everything passed."""
    sys.path.insert(0, str(ROOT))
    from tests import cluster

    if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free >= ROOM:
        os.environ.setdefault("TMPDIR", str(MEMORY))
    environment, together = browser(), not cluster.find().url
    with tempfile.TemporaryDirectory() as caches:
        if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):  # each process would compile our modules
            os.environ.setdefault("PYTHONPYCACHEPREFIX", f"{caches}/bytecode")
        tests = [*TESTS, "-o", f"cache_dir={caches}/tests"]
        browsing = [*BROWSER, "-o", f"cache_dir={caches}/browser"]
        side_by_side = SIDE_BY_SIDE if together else []
        if environment is not None and together:
            with beside("browser tests", browsing + BROWSERS, environment) as done:
                failed = checks()
                tested = run("tests", tests + side_by_side)
            browsed = done[0]
        else:
            failed = checks()
            tested = run("tests", tests + side_by_side)
            browsed = 0 if environment is None else run("browser tests", browsing, environment)
        shaky: list[str] = []
        if tested and not again(tested, "tests", tests, {}, shaky):
            failed.append("tests")
        if browsed and not again(browsed, "browser tests", browsing, environment or {}, shaky):
            failed.append("browser tests")
    for name in shaky:
        sys.stdout.write(f"\npassed only on its second try, to be repaired: {name}\n")
    if environment is None:
        sys.stdout.write("\nbrowser suite not run: no Chromium was found, and Playwright could not download one\n")
        if os.environ.get("PQ_REQUIRE_BROWSER") == "1":
            failed.append("browser tests (PQ_REQUIRE_BROWSER=1)")
    sys.stdout.write(f"\nFAILED: {', '.join(failed)}\n" if failed else "\nAll checks and suites are green.\n")
    return 1 if failed else 0


def checks() -> list[str]:
    """Run every check; return the names of those that failed."""
    failed = [name for name, command in CHECKS.items() if run(name, command)]
    if shutil.which(SCRIPTS[0]):
        failed += ["scripts"] if run("scripts", SCRIPTS) else []
    else:
        sys.stdout.write("\nscripts not checked: no tsc was found (Debian's package node-typescript)\n")
        failed += ["scripts (PQ_REQUIRE_TSC=1)"] if os.environ.get("PQ_REQUIRE_TSC") == "1" else []
    return failed


def again(status: int, name: str, command: list[str], environment: dict[str, str], shaky: list[str]) -> bool:
    """Run the few tests of a suite that failed a second time; add the names of those that then passed to `shaky`."""
    if status != 1:
        return False  # it ended before every test had run
    cache = Path(command[-1].removeprefix("cache_dir="))
    names = list(json.loads((cache / "v/cache/lastfailed").read_bytes()))
    if len(names) > SECOND_TRIES or run(f"{name}, second try", [*command, "--last-failed"], environment):
        return False
    shaky += names
    return True


def run(name: str, command: list[str], environment: dict[str, str] | None = None) -> int:
    """Run one command with its output shown, say how long it took, and return its exit status."""
    announce(name, command)
    begun = time.monotonic()
    program = BIN / command[0] if (BIN / command[0]).exists() else command[0]
    done = subprocess.run([program, *command[1:]], cwd=ROOT, env=os.environ | (environment or {}), check=False)
    return told(name, done.returncode, begun)


@contextmanager
def beside(name: str, command: list[str], environment: dict[str, str]) -> Iterator[list[int]]:
    """Run one command beside what is done meanwhile; then show its output, and tell its exit status."""
    statuses: list[int] = []
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
            yield statuses
            process.wait()
        finally:
            process.terminate()
            process.wait()
        announce(name, command)
        output.seek(0)
        shutil.copyfileobj(output, sys.stdout)
        statuses.append(told(name, process.returncode, begun))


def announce(name: str, command: list[str]) -> None:
    """Say what runs."""
    sys.stdout.write(f"\n== {name}: {' '.join(command)}\n")
    sys.stdout.flush()


def told(name: str, status: int, begun: float) -> int:
    """Say how it went, and how long it took; return the exit status."""
    sys.stdout.write(f"== {name}: {'FAILED' if status else 'ok'}, {time.monotonic() - begun:.0f} s\n")
    sys.stdout.flush()
    return status


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
