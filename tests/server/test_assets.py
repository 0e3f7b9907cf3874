"""Static files: prepared when they change, named by content, served without a step for the user."""

import posixpath
import re
from pathlib import Path
from typing import Any

import pytest
from django.contrib.staticfiles.storage import staticfiles_storage
from django.templatetags.static import static

from pqadmin.server import asset_bundles, assets

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def folder(settings, tmp_path: Path) -> Path:
    """A fresh STATIC_ROOT, and the storage made anew for it."""
    settings.STATIC_ROOT = tmp_path / "static"
    settings.STORAGES = settings.STORAGES | {}  # Django forgets the storages it has made
    return tmp_path / "static"


async def ask(path: str, *headers: tuple[bytes, bytes]) -> tuple[int, dict[str, str], bytes]:
    """Return status, headers and body that the static layer answers with; 599 is what it lets through."""
    sent: list[dict[str, Any]] = []

    async def beyond(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 599, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": list(headers)}
    await assets.serve(beyond)(scope, None, send)
    body = b"".join(message.get("body", b"") for message in sent)
    return sent[0]["status"], {k.decode().lower(): v.decode() for k, v in sent[0]["headers"]}, body


def test_prepared_once_and_again_only_after_a_change(folder: Path, settings, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "a.css").write_text("a { color: red }")
    settings.STATICFILES_DIRS = [*settings.STATICFILES_DIRS, own]
    assert assets.prepare() is True
    assert assets.prepare() is False
    first = static("a.css")
    assert re.fullmatch(r"/static/a\.[0-9a-f]{12}\.css", first)
    (own / "a.css").write_text("a { color: blue }")
    assert assets.prepare() is True
    staticfiles_storage.hashed_files = staticfiles_storage.load_manifest()[0]
    assert static("a.css") != first


def test_files_that_were_cut_off_are_made_anew(folder: Path, settings, tmp_path: Path) -> None:
    """As by a kill, or on a full disk: what is there already is not taken for whole."""

    def files() -> dict[Path, bytes]:
        found = [path for path in folder.rglob("*") if path.is_file()]
        return {path: path.read_bytes() for path in found if path.suffix != ".json"}  # it has times of files

    own = tmp_path / "own"
    own.mkdir()
    (own / "a.css").write_text("a { color: red }")
    settings.STATICFILES_DIRS = [own]
    settings.STATICFILES_FINDERS = ["django.contrib.staticfiles.finders.FileSystemFinder"]
    assert assets.prepare() is True
    whole = files()
    (own / "b.css").write_text('b { background: url("nowhere.png") }')
    with pytest.raises(ValueError, match="nowhere"):
        assets.prepare()
    for path in files():
        path.write_bytes(b"")
    (own / "b.css").unlink()
    assert assets.prepare() is True
    assert files() == whole


def test_names_are_plain_until_prepared(folder: Path) -> None:
    assert static("pqadmin/css/base.css") == "/static/pqadmin/css/base.css"


async def test_unprepared_files_are_served_from_the_package(folder: Path) -> None:
    status, headers, body = await ask("/static/pqadmin/css/base.css")
    assert status == 200
    assert headers["content-type"].startswith("text/css")
    assert body == (ROOT / "static/pqadmin/css/base.css").read_bytes()


async def test_prepared_files_are_immutable_compressed_and_secured(folder: Path) -> None:
    assets.prepare()
    url = static("pqadmin/css/base.css")
    status, headers, _ = await ask(url, (b"accept-encoding", b"gzip"))
    assert status == 200
    assert "immutable" in headers["cache-control"]
    assert headers["content-encoding"] == "gzip"
    assert headers["x-content-type-options"] == "nosniff"
    assert "access-control-allow-origin" not in headers
    plain_status, plain_headers, _ = await ask("/static/pqadmin/css/base.css")
    assert (plain_status, plain_headers["cache-control"]) == (200, "max-age=60, public")


async def test_a_page_needs_one_stylesheet_and_one_script(folder: Path) -> None:
    assets.prepare()
    for name in ("main.js", "wall.js", "retry.js", "styles.css", "wall.css"):
        status, _, body = await ask(static(f"joined/{name}"))
        assert status == 200, name
        assert not re.search(r"^(?:import|export)\b|@import", body.decode(), re.MULTILINE), name
        for address in re.findall(r'url\("([^"]+)"\)', body.decode()):
            assert (await ask(posixpath.normpath(f"/static/joined/{address}")))[0] == 200, address


def test_every_source_is_in_a_joined_file_or_served_alone() -> None:
    sources = ROOT / "static/pqadmin"
    files = asset_bundles.files()
    styles = {name for names in asset_bundles.STYLES.values() for name in names}
    assert styles == {path.stem for path in (sources / "css").glob("*.css")}
    modules = {name for text in files.values() for name in re.findall(r"^// (\w+)\.js$", text, re.MULTILINE)}
    assert modules | {"wall_guard"} == {path.stem for path in (sources / "js").glob("*.js")}


def test_modules_that_import_each_other_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.js").write_text('import { b } from "./b.js";\nexport const a = 1;\n')
    (tmp_path / "b.js").write_text('import { a } from "./a.js";\nexport const b = 2;\n')
    with pytest.raises(ValueError, match="a -> b -> a"):
        asset_bundles.join_modules(tmp_path, ["a"])


async def test_nothing_else_is_served(folder: Path) -> None:
    assets.prepare()
    for path in (
        "/static/",
        "/static/nothing.css",
        "/static/../settings.py",
        "/static/%2e%2e/settings.py",
        "/static/pqadmin/css/../../../settings.py",
        "/static/.prepared",
        "/static/staticfiles.json",
    ):
        assert (await ask(path))[0] == 599, path


async def test_an_unchanged_file_is_not_sent_again(folder: Path) -> None:
    assets.prepare()
    url = static("pqadmin/css/base.css")
    _, headers, _ = await ask(url)
    status, _, body = await ask(url, (b"if-none-match", headers["etag"].encode()))
    assert (status, body) == (304, b"")
