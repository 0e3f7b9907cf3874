"""The lock files: exact, complete, and naming no package index."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOCKS = ["requirements.lock", "requirements-dev.lock", "requirements-bench.lock"]


def pins(name: str) -> set[tuple[str, str]]:
    text = (ROOT / name).read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z0-9._-]+)==(\S+)", text, re.MULTILINE))


@pytest.mark.parametrize("name", LOCKS)
def test_every_line_is_a_pin_or_a_hash(name: str) -> None:
    for line in (ROOT / name).read_text(encoding="utf-8").splitlines():
        assert re.fullmatch(r"[a-z0-9._-]+==\S+( ; .+)? \\|    --hash=sha256:[0-9a-f]{64}( \\)?", line), line


def test_development_runs_what_users_run() -> None:
    assert pins(LOCKS[0]) <= pins(LOCKS[1])
    developed = pins(LOCKS[1])
    assert {pin for pin in pins(LOCKS[2]) if pin[0] in dict(developed)} <= developed


def test_the_lock_holds_what_the_project_asks_for() -> None:
    import tomllib

    from packaging.requirements import Requirement

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for name, extra in (("requirements-dev.lock", "dev"), ("requirements-bench.lock", "bench")):
        locked = dict(sorted(pins(name)))
        for requirement in map(Requirement, [*project["dependencies"], *project["optional-dependencies"][extra]]):
            assert requirement.specifier.contains(locked[requirement.name.lower()]), requirement
