"""The lock files: exact, complete, and naming no package index."""

import re
import tomllib
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
LOCKS = ["requirements.lock", "requirements-dev.lock", "requirements-bench.lock", "requirements-build.lock"]


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


def test_what_runs_is_locked_without_the_tools_that_build_it() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    runs, builds = needed(project["project"]["dependencies"]), needed(project["dependency-groups"]["build"])
    locked, tools = dict(pins("requirements.lock")), dict(pins("requirements-build.lock"))
    assert runs <= locked.keys()
    assert builds == tools.keys()
    assert not {"pip", "setuptools", "wheel", *builds - runs} & locked.keys()
    assert {name: locked[name] for name in locked.keys() & tools} == {
        name: tools[name] for name in locked.keys() & tools
    }
    assert set(tools.items()) <= pins("requirements-dev.lock")


def needed(requirements: list[str]) -> set[str]:
    """Return the names of what these need on this machine, and of what that needs in turn."""
    found: set[str] = set()
    left = [Requirement(text) for text in requirements]
    while left:
        asked = left.pop()
        name = canonicalize_name(asked.name)
        if name in found:
            continue
        found.add(name)
        inner = map(Requirement, distribution(name).requires or ())
        left += [
            each
            for each in inner
            if each.marker is None or any(each.marker.evaluate({"extra": extra}) for extra in ("", *asked.extras))
        ]
    return found


def test_the_lock_holds_what_the_project_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for name, extra in (("requirements-dev.lock", "dev"), ("requirements-bench.lock", "bench")):
        locked = dict(sorted(pins(name)))
        for requirement in map(Requirement, [*project["dependencies"], *project["optional-dependencies"][extra]]):
            assert requirement.specifier.contains(locked[requirement.name.lower()]), requirement
