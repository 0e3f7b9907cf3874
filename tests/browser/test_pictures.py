"""The documents' pictures still show what the site shows; where they do not, `make pictures` takes them anew.

See `tests.browser.pictures.likeness` for what is compared.
"""

import json
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.browser.conftest import ROOT
from tests.browser.pictures.__main__ import FOLDER, LAYOUTS
from tests.browser.pictures.likeness import differences
from tests.browser.pictures.shots import Photographer, Taken, demo_site, picture, restyle


@pytest.fixture(scope="module")
def photographer(tmp_path_factory: pytest.TempPathFactory, chromium: Browser) -> Iterator[Photographer]:
    """A person that takes pictures of the demo."""
    with demo_site(tmp_path_factory.mktemp("pictures")) as site:
        yield Photographer(site, chromium)


def unlike(name: str, taken: Taken, photographer: Photographer, chromium: Browser) -> list[str]:
    """Return what differs between a picture of the documents and one that was just taken."""
    layout, share = json.loads(LAYOUTS.read_text("utf-8"))[name], photographer.shots[name].share
    return differences((FOLDER / f"{name}.png").read_bytes(), layout, taken, chromium, share=share)


def test_every_picture_shows_what_the_site_shows(photographer: Photographer, chromium: Browser) -> None:
    assert {path.stem for path in FOLDER.glob("*.png")} == set(photographer.shots)
    found = {name: unlike(name, photographer.take(name), photographer, chromium) for name in photographer.shots}
    changed = {name: faults for name, faults in found.items() if faults}
    assert not changed, f"These pages look otherwise than their pictures in docs/img: run make pictures. {changed}"


def test_a_page_that_has_changed_is_noticed(photographer: Photographer, chromium: Browser) -> None:
    changes = {
        ":root { --bg: #f3ead8 }": "body looked",
        ":root { --panel: #ffe9b8 }": "of the picture has other colors",
        ":root { --accent: #0b7a5b }": r"a\.button\.primary looked",
        ".q .out { display: none }": r"td\.out is gone",
        ".q :is(th, td) { padding-block: 1.2rem }": "tr was at",
    }
    with photographer.open("overview-light") as page:
        for style, told in changes.items():
            restyle(page, style)
            found = unlike("overview-light", picture(page), photographer, chromium)
            assert any(re.search(told, fault) for fault in found), (style, found)


def test_every_picture_is_shown_by_a_document() -> None:
    texts = [path.read_text("utf-8") for path in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))]
    shown = {name for text in texts for name in re.findall(r"img/([\w-]+)\.png", text)}
    assert shown == {path.stem for path in FOLDER.glob("*.png")}
