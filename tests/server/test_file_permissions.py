"""The rights of what the site keeps, as a command in a process of its own makes and repairs them."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.forks import run_forked_text
from tests.prepared import prepare


def run(data: Path, name: str, *, umask: int, code: int = 0) -> str:
    """Run a command that makes whatever the site needs, and return what it logs."""
    settings = {key: value for key, value in os.environ.items() if not key.startswith(("PQ", "DATABASE"))}
    settings["PQADMIN_DATA"] = str(data)
    done = run_forked_text("create_user", name, "--role", "viewer", env=settings, umask=umask)
    assert done.returncode == code, done.stderr
    return done.stderr


#: Folders of static files, behind the rights of the data folder.
FILES = ("static", "joined")


def modes(folder: Path) -> dict[str, int]:
    """Return the modes of the folder and of the files in it; its folders are behind its own rights."""
    return {path.name: path.stat().st_mode & 0o7777 for path in (folder, *folder.iterdir()) if path.name not in FILES}


@pytest.mark.parametrize("umask", [0o000, 0o022])
def test_a_data_folder_is_its_owners_alone(umask: int, tmp_path: Path) -> None:
    data = tmp_path / "var"
    assert run(data, "ann", umask=umask) == ""
    assert modes(data) == {"var": 0o700, ".starting": 0o600, "secret_key": 0o600, "site.sqlite3": 0o600}


def test_a_data_folder_that_was_there_is_repaired_and_the_log_says_so(tmp_path: Path) -> None:
    data = tmp_path / "var"
    prepare(data)
    run(data, "ann", umask=0o077)
    data.chmod(0o2775)
    for path in data.iterdir():
        path.chmod(0o644 if path.is_file() else 0o755)
    with closing(sqlite3.connect(data / "site.sqlite3")) as tables:
        assert tables.execute("select count(*) from auth_user").fetchone() == (2,)
        for beside in ("-wal", "-shm"):  # there while the tables are open
            (data / f"site.sqlite3{beside}").chmod(0o644)
        said = run(data, "bob", umask=0o022)
        assert set(modes(data).values()) == {0o2700, 0o600}
        assert {"site.sqlite3-wal", "site.sqlite3-shm"} <= modes(data).keys()
    assert f"{data} had the rights 2775, and has 2700 now" in said
    assert f"{data / 'site.sqlite3'} had the rights 0644, and has 0600 now" in said
    assert "could be read by other users, which lets them sign sessions" in said
    assert run(data, "eve", umask=0o022) == ""


@pytest.mark.parametrize("there", [["lib", "log"], ["lib", "store"]])
def test_a_folder_of_other_programs_keeps_its_rights(there: list[str], tmp_path: Path) -> None:
    """Started in `/`, the default data folder is `/var`."""
    data = tmp_path / "var"
    for name in there:
        (data / name).mkdir(parents=True)
    data.chmod(0o755)
    said = run(data, "ann", umask=0o022, code=1)
    assert said == (
        f"the data folder {data} cannot be used: it holds files of other programs, and other users may open it; "
        "set PQADMIN_DATA\n"
    )
    assert data.stat().st_mode & 0o7777 == 0o755
    assert {path.name for path in data.iterdir()} == set(there)


@pytest.mark.parametrize("there", [[], ["store"], ["lost+found"]])
def test_a_folder_that_was_made_for_the_site_is_taken(there: list[str], tmp_path: Path) -> None:
    data = tmp_path / "var"
    data.mkdir()
    for name in there:
        (data / name).mkdir()
    data.chmod(0o755)
    assert f"{data} had the rights 0755, and has 0700 now" in run(data, "ann", umask=0o022)


def test_tables_that_were_copied_into_a_folder_are_taken(tmp_path: Path) -> None:
    data = tmp_path / "var"
    prepare(data)
    data.chmod(0o755)
    assert f"{data} had the rights 0755, and has 0700 now" in run(data, "ann", umask=0o022)
