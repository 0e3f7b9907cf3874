"""Run every check and every suite, then say which failed; `make test` is this.

The browser suite runs in a process of its own: Playwright and the other tests each want the event loop.
Without a Chromium it is not run, which is a failure only where PQ_REQUIRE_BROWSER=1.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sysconfig.get_path("scripts"))
CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHECKS: dict[str, list[str]] = {
    "style": ["ruff", "check", "."],
    "format": ["ruff", "format", "--check", "."],
    "types": ["mypy"],
    "import directions": ["lint-imports", "--no-cache"],
    "tests": ["pytest", "--ignore=tests/browser"],
}
BROWSER = ["pytest", "tests/browser"]


def main() -> int:
    """Return 0 if everything passed."""
    failed = [name for name, command in CHECKS.items() if not run(name, command)]
    if not (ROOT / "tests" / "browser").is_dir():
        sys.stdout.write("\nbrowser suite not run: there is none\n")
    elif (environment := browser()) is None:
        sys.stdout.write("\nbrowser suite not run: no Chromium was found, and Playwright could not download one\n")
        if os.environ.get("PQ_REQUIRE_BROWSER") == "1":
            failed.append("browser tests (PQ_REQUIRE_BROWSER=1)")
    elif not run("browser tests", BROWSER, environment):
        failed.append("browser tests")
    sys.stdout.write(f"\nFAILED: {', '.join(failed)}\n" if failed else "\nAll checks and suites are green.\n")
    return 1 if failed else 0


def run(name: str, command: list[str], environment: dict[str, str] | None = None) -> bool:
    """Run one command with its output shown, and say how long it took."""
    sys.stdout.write(f"\n== {name}: {' '.join(command)}\n")
    sys.stdout.flush()
    begun = time.monotonic()
    done = subprocess.run([BIN / command[0], *command[1:]], cwd=ROOT, env=os.environ | (environment or {}), check=False)
    sys.stdout.write(f"== {name}: {'ok' if done.returncode == 0 else 'FAILED'}, {time.monotonic() - begun:.0f} s\n")
    sys.stdout.flush()
    return done.returncode == 0


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
