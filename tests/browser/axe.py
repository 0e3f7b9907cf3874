"""axe-core on a page: what it finds by WCAG 2.2 AA and what it counts as good practice."""

from pathlib import Path
from typing import Any

from playwright.sync_api import Page

SOURCE = Path(__file__).parent / "vendor" / "axe-core" / "axe.min.js"
#: Rules that find other things in other colors.
CONTRAST = ["color-contrast", "link-in-text-block"]
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
#: Runs axe on final colors: after a change of the color scheme, transitions may still be on the way there.
RUN = """async (only) => {
    const still = new CSSStyleSheet();
    still.replaceSync("*, ::before, ::after { transition-property: none !important }");
    document.adoptedStyleSheets.push(still);
    const found = await axe.run(document, { runOnly: only, resultTypes: ["violations"] });
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((each) => each !== still);
    return found;
}"""


def findings(page: Page, only: list[str] | None = None) -> list[dict[str, Any]]:
    """Run axe in the page, past its policy, and return what it found: by all rules, or only by those named."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(SOURCE.read_text("utf-8"))
    found = page.evaluate(RUN, TAGS if only is None else only)
    return [
        {"rule": violation["id"], "where": [node["target"] for node in violation["nodes"]][:5]}
        for violation in found["violations"]
    ]


def findings_by_day_and_night(page: Page) -> list[dict[str, Any]]:
    """Return what axe finds in a light page, and in its dark colors."""
    page.emulate_media(color_scheme="light")
    light = findings(page)
    page.emulate_media(color_scheme="dark")
    return light + [{**found, "scheme": "dark"} for found in findings(page, CONTRAST)]
