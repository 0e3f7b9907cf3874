"""The wheel, installed into an empty environment, serves from an empty folder: pages, templates, assets."""

import os
import re
import subprocess
import sys
import urllib.request
import venv
import zipfile
from pathlib import Path

import pytest

from tests.programs import run_to_end

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel with the locked build backend."""
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    built = subprocess.run(build, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    return next(folder.glob("pqadmin-*.whl"))


def test_everything_that_is_not_code_is_inside(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    listed = run_to_end(
        ["git", "ls-files", "queues", "pqadmin", "templates", "static"],
        cwd=ROOT,
    ).stdout.split()
    wanted = {name for name in listed if (ROOT / name).is_file()}
    wanted = {f"pqadmin/{name}" if name.startswith(("templates/", "static/")) else name for name in wanted}
    development = {name for name in wanted if name.startswith("pqadmin/styleguide/")}
    assert development
    assert not development & names, "samples for development"
    assert wanted - development <= names
    assert not [name for name in names if name.startswith(("tests/", "benchmarks/"))]
    assert [name for name in names if name.endswith("licenses/LICENSE")]


def test_it_serves_from_an_empty_folder(wheel: Path, tmp_path: Path) -> None:
    """Dependencies come from this environment by a path file: what is proved is what the wheel brings."""
    venv.create(tmp_path / "venv", with_pip=False)
    packages = next((tmp_path / "venv" / "lib").glob("python*/site-packages"))
    here = next(path for path in map(Path, sys.path) if (path / "django").is_dir())
    zipfile.ZipFile(wheel).extractall(packages)
    (packages / "zz_dependencies.pth").write_text(f"{here}\n")
    empty = tmp_path / "empty"
    empty.mkdir()
    python = tmp_path / "venv" / "bin" / "python"
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PQADMIN_", "PYTHON", "DJANGO_"))}
    with subprocess.Popen(
        [python, "-m", "pqadmin", "serve", "--port", "0"],
        cwd=empty,
        env=clean | {"PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        try:
            said = ""
            while not (address := re.search(r"Address\s+(http://\S+)/", said)):
                line = server.stdout.readline()
                assert line, said
                said += line
            with urllib.request.urlopen(f"{address.group(1)}/accounts/login/", timeout=120) as page:
                login = page.read().decode()
            assets = re.findall(r'(?:href|src)="(/static/[^"#]+)', login)
            assert assets
            for asset in assets:
                assert re.search(r"\.[0-9a-f]{12}\.", asset), asset
                with urllib.request.urlopen(address.group(1) + asset, timeout=120) as answer:
                    assert answer.status == 200
            where = run_to_end(
                [python, "-c", "import pqadmin, queues; print(pqadmin.__file__, queues.__file__)"],
                cwd=empty,
                env=clean,
                check=True,
            ).stdout
            assert where.count(str(packages)) == 2
        finally:
            server.terminate()
        assert server.wait(120) == 0
    assert (empty / "var" / "store").is_dir()
