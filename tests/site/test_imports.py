"""Imports, where import-linter does not look close enough, and names that say nothing."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted(path.relative_to(ROOT) for package in ("queues", "pqadmin") for path in (ROOT / package).rglob("*.py"))


@cache
def imports(module: Path) -> list[str]:
    """Return the full name of everything that the module imports, also inside functions."""
    found: list[str] = []
    for node in ast.walk(ast.parse((ROOT / module).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found += (f"{node.module}.{alias.name}" for alias in node.names)
    return found


def importers(*names: str, but: tuple[str, ...] = ()) -> set[str]:
    """Return the modules that import any of `names` or what is inside them; what is inside `but` does not count."""
    return {
        str(module)
        for module in MODULES
        for imported in imports(module)
        if _is_inside(imported, names) and not _is_inside(imported, but)
    }


def _is_inside(imported: str, names: tuple[str, ...]) -> bool:
    return any(imported == name or imported.startswith(f"{name}.") for name in names)


def outside(folder: str, modules: set[str]) -> set[str]:
    return {name for name in modules if not name.startswith(folder)}


def test_only_the_embedded_engine_imports_lmdb() -> None:
    assert importers("lmdb")
    assert outside("queues/kv/embedded/", importers("lmdb")) == set()


def test_of_foundationdb_only_the_tuple_layer_is_used_outside_its_engine() -> None:
    assert outside("queues/kv/cluster/", importers("fdb", but=("fdb.tuple",))) == set()


def test_few_modules_build_keys() -> None:
    # Slots are the engines' own keys, below the queues' keyspace.
    assert importers("fdb.tuple") == {"queues/model/tuples.py", "queues/kv/commit_slots.py"}
    # Pushes and leases pack an id once for all of its keys; an item unpacks its own when a program asks for it.
    # A store's address is handed to another process with its root packed.
    assert importers("queues.model.tuples", but=("queues.model.tuples.Range",)) <= {
        "queues/keys/keyspace.py",
        "queues/keys/queue_keys.py",
        "queues/keys/ready_batch.py",
        "queues/items/leased.py",
        "queues/operations/push.py",
        "queues/operations/settle.py",
        "queues/model/item.py",
        "queues/model/store_address.py",
    }


def test_the_storage_port_is_on_its_own() -> None:
    for module in MODULES:
        if str(module).startswith("queues/kv/"):
            strangers = [
                name for name in imports(module) if name.startswith("queues.") and not name.startswith("queues.kv")
            ]
            assert strangers == [], module


@pytest.mark.parametrize("name", ["utils", "helpers", "common", "misc"])
def test_no_module_has_a_name_that_says_nothing(name: str) -> None:
    assert [str(module) for module in MODULES if module.stem == name or name in module.parts] == []


def test_the_root_of_the_core_has_few_modules() -> None:
    assert len(list((ROOT / "queues").glob("*.py"))) <= 8


def test_documents_import_what_programs_import() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    found = {
        name
        for page in pages
        for name in re.findall(r"^\s*(?:from|import) (queues[\w.]*)", page.read_text(), re.MULTILINE)
    }
    assert found <= {"queues", "queues.errors", "queues.workers", "queues.local"}
