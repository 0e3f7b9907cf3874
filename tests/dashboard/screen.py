"""Reads an answer as a person would: its text, its forms, its rows; and checks what every page promises."""

import re
from collections.abc import Mapping
from html.parser import HTMLParser
from typing import Any

_VOID = {"meta", "link", "input", "br", "hr", "img", "col", "use", "path", "circle", "rect"}
_UNLABELED = {"hidden", "submit", "button"}


class Screen:
    """One answer."""

    def __init__(self, response: Any) -> None:
        self.response = response
        self.status: int = response.status_code
        self.path: str = response.request["PATH_INFO"]
        self.html: str = response.content.decode()
        self._reader = _Reader()
        self._reader.feed(self.html)
        self._reader.close()
        self.text = " ".join("".join(self._reader.texts).split())
        if response["Content-Type"].startswith("text/html"):
            self._check()

    def __contains__(self, words: str) -> bool:
        return words in self.text

    @property
    def title(self) -> str:
        """What the tab says."""
        found = re.search(r"<title>(.*?)</title>", self.html, re.DOTALL)
        assert found
        return found.group(1)

    def form(self, to: str) -> tuple[str, dict[str, str]]:
        """Return the address and the fields of the form that goes to an address ending in `to`."""
        for action, fields in self._reader.forms:
            if action.endswith(to):
                return action, dict(fields)
        raise AssertionError(f"no form to {to}, only to {[action for action, _ in self._reader.forms]}")

    @property
    def forms(self) -> list[tuple[str, dict[str, str]]]:
        """The address and the fields of each form."""
        return self._reader.forms

    def has_form(self, to: str) -> bool:
        """Say whether a form goes to an address ending in `to`."""
        return any(action.endswith(to) for action, _ in self._reader.forms)

    @property
    def links(self) -> list[str]:
        """Where its links lead."""
        return self._reader.links

    @property
    def rows(self) -> dict[str, dict[str, str]]:
        """The overview's rows by queue, their fields as text."""
        return {name: {k: " ".join(v.split()) for k, v in row.items()} for name, row in self._reader.rows.items()}

    @property
    def order(self) -> list[str]:
        """The queues of the table from top to bottom."""
        return list(self._reader.rows)

    def _check(self) -> None:
        assert not self._reader.faults, self._reader.faults
        missing = [name for name in self._reader.fields if name not in self._reader.labels]
        assert not missing, f"fields without a label: {missing}"
        assert self._reader.tables == self._reader.captions, "a table without a caption"


class _Reader(HTMLParser):
    """Gathers in one pass what `Screen` tells."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.forms: list[tuple[str, dict[str, str]]] = []
        self.links: list[str] = []
        self.rows: dict[str, dict[str, str]] = {}
        self.faults: list[str] = []
        self.fields: list[str] = []
        self.labels: set[str] = set()
        self.tables = self.captions = 0
        self._open: list[tuple[str, Mapping[str, str | None]]] = []
        self._row: dict[str, str] | None = None
        self._area: str | None = None
        self._select: str | None = None
        self._ids: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        at = dict(attrs)
        self._judge(tag, at)
        if tag not in _VOID:
            self._open.append((tag, at))
        match tag:
            case "form":
                self.forms.append((at.get("action") or "", {}))
            case "a":
                self.links.append(at.get("href") or "")
            case "tr" if at.get("data-queue"):
                self._row = self.rows.setdefault(
                    at["data-queue"] or "", {name: at[f"data-{name}"] or "" for name in ("level", "mark")}
                )
            case "label":
                self.labels.add(at.get("for") or "")
            case "table":
                self.tables += 1
            case "caption":
                self.captions += 1
            case "input" | "textarea" | "select":
                self._field(tag, at)
            case "option" if self._select and self.forms:
                fields = self.forms[-1][1]
                if "selected" in at or self._select not in fields:
                    fields[self._select] = at.get("value") or ""

    def _field(self, tag: str, at: Mapping[str, str | None]) -> None:
        name, kind = at.get("name") or "", at.get("type") or "text"
        inside_label = any(tag == "label" for tag, _ in self._open)
        if kind not in _UNLABELED and not at.get("aria-label") and not inside_label:
            self.fields.append(at.get("id") or name)
        if not self.forms or not name:
            return
        fields = self.forms[-1][1]
        if tag == "textarea":
            self._area = name
            fields[name] = ""
        elif tag == "select":
            self._select = name
        elif kind != "radio" or "checked" in at:
            fields[name] = at.get("value") or ""

    def _judge(self, tag: str, at: Mapping[str, str | None]) -> None:
        if tag == "style" or "style" in at:
            self.faults.append(f"inline style at <{tag}>")
        if tag == "script" and not at.get("src"):
            self.faults.append("inline script")
        self.faults += [f"{name} at <{tag}>" for name in at if name.startswith("on")]
        if (identifier := at.get("id")) is not None:
            if identifier in self._ids:
                self.faults.append(f"id {identifier} twice")
            self._ids.add(identifier)
        for name in ("href", "src", "action", "formaction"):
            value = at.get(name) or ""
            if tag == "a" and at.get("rel") == "external noopener noreferrer" and value.startswith(("http:", "https:")):
                continue  # a runbook: the one link that leads out, and without a referer
            if re.match(r"(?i)\s*(javascript|data|https?|//)", value):
                self.faults.append(f"{name}={value[:40]}")

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop()[0] != tag:
            pass
        if tag == "tr":
            self._row = None
        elif tag == "textarea":
            self._area = None
        elif tag == "select":
            self._select = None

    def handle_data(self, data: str) -> None:
        inside = {tag for tag, _ in self._open}
        if "template" in inside or "title" in inside:
            return
        if self._area is not None:
            # The first line break after <textarea> is not part of the value.
            text = data.removeprefix("\n") if not self.forms[-1][1][self._area] else data
            self.forms[-1][1][self._area] += text
            return
        self.texts.append(data + " ")
        if self._row is not None:
            for _, at in self._open:
                if (field := at.get("data-field")) is not None:
                    self._row[field] = self._row.get(field, "") + data
