"""Documents: every relative link leads to a file and a heading, and the index names every page."""

import inspect
import re
import subprocess
from pathlib import Path

import pytest

import queues
import queues.workers
from tests.site import api_page, http_api_page

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted({ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")} | set(DOCS.rglob("*.md")))
LINK = re.compile(r"\]\(([^)\s#]*)(?:#([^)\s]*))?\)")
HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)
CODE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub gives the headings of a page."""
    headings = HEADING.findall(CODE.sub("", page.read_text("utf-8")))
    return {re.sub(r"[^\w\- ]", "", re.sub(r"\]\([^)]*\)", "", text).lower()).replace(" ", "-") for text in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    for path, anchor in LINK.findall(CODE.sub("", page.read_text("utf-8"))):
        if "://" in path:
            continue
        target = page.parent / path if path else page
        assert target.exists(), path
        if anchor:
            assert anchor in anchors(target), f"{path}#{anchor}"


def test_every_picture_is_shown_by_a_document() -> None:
    shown = {name for page in PAGES for name in re.findall(r"img/([\w-]+)\.png", page.read_text("utf-8"))}
    assert shown == {path.stem for path in (DOCS / "img").glob("*.png")}


def test_the_index_names_every_page() -> None:
    index = (DOCS / "README.md").read_text("utf-8")
    named = {(DOCS / path).resolve() for path, _ in LINK.findall(index) if "://" not in path}
    pages = {page for page in DOCS.rglob("*.md") if page.parent.name != "decisions" and page != DOCS / "README.md"}
    assert pages <= named


def test_every_document_that_a_source_names_is_there() -> None:
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    for name in files.split("\0"):
        path = ROOT / name
        if path.suffix in {".py", ".js", ".json", ".yml", ".html", ".sh", ".md", ".po"} and path.is_file():
            for document in re.findall(r"\bdocs/[\w/-]+\.md", path.read_text("utf-8")):
                assert (ROOT / document).is_file(), f"{name}: {document}"


def test_the_reference_of_the_python_api_is_that_of_the_docstrings() -> None:
    assert api_page.PAGE.read_text("utf-8") == api_page.page(), "run `make reference`"


def test_the_reference_of_the_python_api_has_the_names_that_programs_call() -> None:
    for entry in api_page.PAGE.read_text("utf-8").split("\n### ")[1:]:
        owner = entry.split("\n", 1)[0]
        found = [getattr(module, owner) for module in (queues, queues.workers) if hasattr(module, owner)]
        if inspect.isclass(found[0]):
            called = re.findall(r"^```python\n(?:await )?(\w+)[(:]", entry, re.MULTILINE)
            assert len(set(called)) == len(called)
            assert [name for name in called if name != owner and not any(hasattr(of, name) for of in found)] == []


def test_the_reference_of_the_http_api_is_that_of_the_schema() -> None:
    assert http_api_page.PAGE.read_text("utf-8") == http_api_page.page(), "run `make reference`"


def test_the_table_of_problems_is_that_of_the_api() -> None:
    assert (DOCS / "reference" / "errors.md").read_text("utf-8").endswith(http_api_page.errors_section())
