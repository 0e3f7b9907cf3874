"""axe-core on a page: what it finds by WCAG 2.2 AA and what it counts as good practice."""

from pathlib import Path
from typing import Any

from playwright.sync_api import Page

SOURCE = Path(__file__).parent / "vendor" / "axe-core" / "axe.min.js"
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


def findings(page: Page, only: list[str] | None = None) -> list[dict[str, Any]]:
    """Run axe in the page, past its policy, and return what it found: by all rules, or only by those named."""
    page.evaluate(SOURCE.read_text("utf-8"))
    found = page.evaluate(
        "only => axe.run(document, {runOnly: only, resultTypes: ['violations']})", TAGS if only is None else only
    )
    return [
        {"rule": violation["id"], "where": [node["target"] for node in violation["nodes"]][:5]}
        for violation in found["violations"]
    ]
