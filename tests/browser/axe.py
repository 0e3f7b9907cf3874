"""axe-core on a page: what it finds by WCAG 2.2 AA and what it counts as good practice."""

from pathlib import Path
from typing import Any

from playwright.sync_api import Page

SOURCE = Path(__file__).parent / "vendor" / "axe-core" / "axe.min.js"
#: Rules that find other things in other colors.
CONTRAST = ["color-contrast", "link-in-text-block"]
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
#: Runs axe on final colors: after a change of the color scheme, transitions may still be on the way there. With
#: `each`, it looks at one text of each look: same colors before the same backgrounds, as large and as bold.
RUN = """async ([only, each]) => {
    const still = new CSSStyleSheet();
    still.replaceSync("*, ::before, ::after { transition-property: none !important }");
    document.adoptedStyleSheets.push(still);
    const behind = new Map([[null, ""]]);
    const behindOf = (e) => {
        if (!behind.has(e)) {
            const { backgroundColor, backgroundImage, opacity } = getComputedStyle(e);
            const own = `${backgroundColor} ${backgroundImage} ${opacity}`;
            const above = behindOf(e.parentElement);
            behind.set(e, own === "rgba(0, 0, 0, 0) none 1" ? above : `${above}|${own}`);
        }
        return behind.get(e);
    };
    const looks = new Map();
    const looksOf = (e) => {
        const { color, fontSize, fontWeight, textDecorationLine, textShadow } = getComputedStyle(e);
        const beside = e.localName === "a" ? `in ${getComputedStyle(e.parentElement).color}` : "";
        return [beside, color, fontSize, fontWeight, textDecorationLine, textShadow, behindOf(e)].join();
    };
    const hasText = (e) => [...e.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
    if (each)
        for (const e of document.body.querySelectorAll("*"))
            if ((hasText(e) || e.matches("input, select, textarea")) && e.checkVisibility()) {
                const look = looksOf(e);
                if (!looks.has(look)) looks.set(look, e);
            }
    const where = each ? { include: [...looks.values()] } : document;
    const found = await axe.run(where, { runOnly: only, resultTypes: ["violations"] });
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((each) => each !== still);
    return found;
}"""


def findings(page: Page, only: list[str] | None = None, *, each_look: bool = False) -> list[dict[str, Any]]:
    """Run axe in the page, past its policy, and return what it found: by all rules, or only by those named.

    `each_look` has it look at one text of each look, which is enough for colors.
    """
    if not page.evaluate("'axe' in window"):
        page.evaluate(SOURCE.read_text("utf-8"))
    found = page.evaluate(RUN, [TAGS if only is None else only, each_look])
    return [
        {"rule": violation["id"], "where": [node["target"] for node in violation["nodes"]][:5]}
        for violation in found["violations"]
    ]


def findings_by_day_and_night(page: Page) -> list[dict[str, Any]]:
    """Return what axe finds in a light page, and in its dark colors: what lies where is the same in both."""
    page.emulate_media(color_scheme="light")
    light = findings(page)
    page.emulate_media(color_scheme="dark")
    return light + [{**found, "scheme": "dark"} for found in findings(page, CONTRAST, each_look=True)]
