"""Bundles of static files: one stylesheet and one module for each kind of page, made when the site starts.

The sources stay small files in `static/pqadmin`. A browser fetches one file of each kind in place of dozens.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.staticfiles.finders import BaseFinder
from django.core.files.storage import FileSystemStorage

#: Sources of each stylesheet in their order, below `static/pqadmin/css`.
STYLES = {
    "styles.css": [
        "tokens",
        "base",
        "layout",
        "header",
        "controls",
        "board",
        "rail",
        "items",
        "lists",
        "forms",
        "acts",
        "sheets",
        "messages",
        "values",
        "jobs",
        "palette",
        "pages",
        "people",
        "boards",
        "touch",
    ],
    "charts.css": ["charts"],
    "wall.css": ["tokens", "wall"],
    "api.css": ["tokens", "base", "api"],
}
#: Entry modules of each script, below `static/pqadmin/js`; the modules that they import come with them.
SCRIPTS = {
    "main.js": ["push", "progress", "main"],
    "charts.js": ["charts"],
    "wall.js": ["wall"],
    "retry.js": ["retry"],
}
_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./(\w+)\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const) (\w+))", re.MULTILINE)


class JoinedFinder(BaseFinder):
    """Staticfiles finder of the joined files, `joined/NAME`. Writes them into the data folder when they changed."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self._folder = Path(settings.PQADMIN_DATA) / "joined"
        self._storage = FileSystemStorage(location=self._folder, base_url=settings.STATIC_URL)

    def check(self, **kwargs: Any) -> list[Any]:
        """Return no faults: nothing can be configured."""
        return []

    def find(self, path: str, find_all: bool = False, **_: Any) -> Any:
        """Return the path of one joined file, or a list with `find_all`."""
        names = [name for name in files() if path == f"joined/{name}"]
        if names:
            self._write()
        found = [str(self._folder / path) for _ in names]
        return found if find_all else next(iter(found), [])

    def list(self, ignore_patterns: Iterable[str] | None) -> Iterator[tuple[str, Any]]:
        """Yield every joined file with its storage."""
        self._write()
        for name in files():
            yield f"joined/{name}", self._storage

    def _write(self) -> None:
        for name, text in files().items():
            path = self._folder / "joined" / name
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                path.parent.mkdir(mode=0o700, exist_ok=True)
                path.write_text(text, encoding="utf-8")


def files() -> dict[str, str]:
    """Return the text of every joined file by its name."""
    sources = settings.JOINED_SOURCES
    return {
        **{name: join_styles(sources / "css", parts) for name, parts in STYLES.items()},
        **{name: join_modules(sources / "js", entries) for name, entries in SCRIPTS.items()},
    }


def join_styles(folder: Path, names: Iterable[str]) -> str:
    """Return stylesheets as one, in this order; addresses in them hold from `joined/`."""
    text = "".join(_read(folder / f"{name}.css") for name in names)
    return text.replace('url("../../', 'url("../')


def join_modules(folder: Path, entries: Iterable[str]) -> str:
    """Return modules as one: each a function of its own, behind those that it imports.

    Sources import by `import { a, b } from "./name.js";` and export functions, classes and constants where they are
    declared. Raises `ValueError` for a circle of imports.
    """
    joined: dict[str, str] = {}

    def add(name: str, importers: tuple[str, ...]) -> None:
        if name in importers:
            raise ValueError("modules import each other: " + " -> ".join((*importers, name)))
        if name in joined:
            return
        text = _read(folder / f"{name}.js")
        for _, imported in _IMPORT.findall(text):
            add(imported, (*importers, name))
        joined[name] = _as_function(name, text)

    for entry in entries:
        add(entry, ())
    return "".join(joined.values())


def _as_function(name: str, text: str) -> str:
    """Return a module as one constant: an object of what it exports."""
    exported = ", ".join(_EXPORT.findall(text))
    text = _EXPORT.sub("", _IMPORT.sub(lambda found: f"const {{{found[1]}}} = {_constant(found[2])};\n", text))
    waits = re.search(r"^await\b", text, re.MULTILINE) is not None
    begin, end = ("await (async () => {", "})()") if waits else ("(() => {", "})()")
    return f"// {name}.js\nconst {_constant(name)} = {begin}\n{text}return {{ {exported} }};\n{end};\n"


def _constant(name: str) -> str:
    return f"module_{name}"


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")
