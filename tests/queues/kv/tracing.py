"""Programs run under strace, and what their system calls were, whole."""

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
#: Seconds after which a traced program is given up.
LONG = 240


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemCall:
    """One system call, whole: its thread, and the lines of the trace where it began and where it ended."""

    thread: str
    text: str
    began: int
    ended: int

    @property
    def name(self) -> str:
        """What was called."""
        return self.text.partition("(")[0]


def traced(command: list[str], log: Path, names: str, *options: str) -> Iterator[SystemCall]:
    """Run a command of this project under strace; yield its calls of these names in the order of their ends."""
    try:
        ended = subprocess.run(
            ["strace", "-f", "-e", f"trace={names}", *options, "-o", log, *command],
            capture_output=True, text=True, timeout=LONG, check=False, cwd=ROOT,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        pytest.fail("the traced program did not end")
    if "Operation not permitted" in ended.stderr:
        pytest.skip("tracing system calls is not permitted here")
    assert ended.returncode == 0, ended.stderr
    begun: dict[str, tuple[int, str]] = {}
    for number, line in enumerate(log.read_text(errors="replace").splitlines()):
        thread, _, text = line.partition(" ")
        text, start = text.strip(), number
        if text.endswith("<unfinished ...>"):
            begun[thread] = (number, text.removesuffix("<unfinished ...>"))
            continue
        if text.startswith("<... "):
            start, first = begun.pop(thread)
            text = first + text.partition(" resumed>")[2]
        yield SystemCall(thread=thread, text=text, began=start, ended=number)
