"""The operator's language: what a person in front of the dashboard does and sees, said in their words.

    operator.open("jobs").select("one", "two").act("move", to="review").expect_toast("Moved 2 items").undo()
    operator.expect_row("jobs", depth=3)

Drives a real Chromium against the real server. Things are found by what a person finds them by: labels, buttons, words;
it works with and without JavaScript. Whatever is expected is waited for.
"""

import re
from typing import Any, Self
from urllib.parse import quote

from playwright.sync_api import Locator, Page, expect

from tests.browser.axe import findings

#: What the words of a row are called on the page.
_FIELDS = {
    "depth": "ready",
    "ready": "ready",
    "delayed": "delayed",
    "leased": "leased",
    "dead": "dead",
}
#: What a row shows only where there are some.
_ONLY_SOME = {"delayed", "leased", "dead"}
#: Actions of the queue itself, each a page below it.
_OF_QUEUES = {"pause", "rename", "delete_queue", "purge", "detach"}


class Operator:
    """A person signed in, in front of one page."""

    def __init__(self, page: Page) -> None:
        self.page = page
        #: The queue that is looked at.
        self.queue = ""

    # Going somewhere

    def open(self, queue: str = "", **query: str | int) -> Self:
        """Open a queue's page, or the overview; `query` is the address's: state="dead", q="text"."""
        self.queue = queue
        return self.go(self._address(queue), **query)

    def go(self, path: str, **query: str | int) -> Self:
        """Open an address of the site."""
        text = "&".join(f"{quote(name)}={quote(str(value))}" for name, value in query.items())
        answer = self.page.goto(f"{path}?{text}" if text else path)
        assert answer.status < 500, (path, answer.status)
        return self

    def open_item(self, item_id: str, queue: str = "") -> Self:
        """Open an item's page."""
        self.queue = queue or self.queue
        return self.go(f"{self._address(self.queue)}items/{item_id}/")

    # Doing something

    def select(self, *items: str) -> Self:
        """Tick items of the list, each by its id or by words of its value."""
        for each in items:
            boxes = "input[type=checkbox][name=id]"
            by_id = re.fullmatch("[0-9a-f]{40}|key-[0-9a-f]+", each)
            row = self.page.locator("#items tr", has_text=each).locator(boxes)
            (self.page.locator(f'{boxes}[value="{each}"]') if by_id else row).check()
        return self

    def act(self, verb: str, **typed: str) -> Self:
        """Do an act on what is selected, on the item or on the queue that is looked at, and confirm it.

        `typed` goes into the fields of its form by their names; a field of choices takes its value.
        """
        self.begin(verb)
        return self.fill(**typed).confirm()

    def begin(self, verb: str) -> Self:
        """Bring the form of an act on the page, and look at it."""
        if verb in _OF_QUEUES:
            return self.go(f"{self._address(self.queue)}{verb.removesuffix('_queue')}/")
        button = self.page.locator(f'.actbar button[value="{verb}"]:enabled')
        if not button.count():
            button = self.page.locator(
                f'button[name=act][value="{verb}"], a[href*="act={verb}&"], a[href$="act={verb}"]'
            )
        button.locator("visible=true").first.click()
        expect(self.form).to_be_visible()
        return self

    def fill(self, **typed: str) -> Self:
        """Type into the fields of the form, by their names."""
        for name, value in typed.items():
            fields = self.form.locator(f'[name="{name}"]:not([type=hidden]):not(button)')
            field = fields.first
            expect(field).to_be_visible()
            if field.evaluate("field => field.tagName") == "SELECT":
                field.select_option(value)
            elif field.get_attribute("type") == "radio":
                self.form.locator(f'[name="{name}"][value="{value}"]').check()
            elif field.get_attribute("type") == "checkbox":
                field.set_checked(value not in ("", "0", "no"))
            else:
                field.fill(value)
        return self

    def preview(self) -> Self:
        """Ask what the form would do."""
        self.form.locator("button[name=preview]").click()
        return self

    def confirm(self) -> Self:
        """Send the form with its main button."""
        button = self.form.locator(
            "button.primary:not([name=preview]):not([name=check]), button.danger:not([name=preview])"
        )
        return self._send(button.first)

    def undo(self) -> Self:
        """Press the undo of the answer."""
        return self._send(self.page.locator(".toast form[action*='/restore/'] button").first)

    def follow(self) -> Self:
        """Go where the answer leads."""
        with self.page.expect_navigation():
            self.page.locator(".toast a").first.click()
        return self

    def push(self, value: str, priority: str | int | None = None, queue: str = "", **typed: str) -> Self:
        """Push an item through the form (FIFO: enqueue it)."""
        self.queue = queue or self.queue
        self.go(f"{self._address(self.queue)}push/")
        given = {"value": value, **({} if priority is None else {"priority": str(priority)}), **typed}
        return self.fill(**given).confirm()

    def pop(self, end: str = "min", queue: str = "", reason: str = "") -> Self:
        """Pop what is at an end, through the page that asks first."""
        self.queue = queue or self.queue
        self.go(f"{self._address(self.queue)}pop/", end=end)
        return self.fill(reason=reason).confirm()

    def search(self, text: str = "", **more: str | int) -> Self:
        """Search the queue that is looked at, by its address."""
        return self.open(self.queue, **({"q": text} if text else {}), **more)

    # Seeing something

    @property
    def form(self) -> Locator:
        """The form of the act that is on the page: below its heading, or inside of the page."""
        forms = self.page.locator("form[data-act-form], #act form[method=post], .narrow form[method=post]")
        return forms.locator("visible=true").first

    @property
    def main(self) -> Locator:
        """What is on the page below its bar."""
        return self.page.locator("main")

    def expect_row(self, queue: str, **fields: str | int) -> Self:
        """See a queue on the overview, as `depth=3`."""
        if not self.page.locator("tr[data-queue]").count() or self.page.url.rstrip("/").count("/") > 2:
            self.open()
        row = self.page.locator(f'tr[data-queue="{queue}"]')
        expect(row).to_have_count(1)
        for name, value in fields.items():
            field = _FIELDS[name]
            if value == 0 and field in _ONLY_SOME:
                expect(row.locator(f'[data-field="{field}"]:not([data-value="0"])')).to_have_count(0)
                continue
            expect(row.locator(f'[data-field="{field}"]').first).to_have_attribute("data-value", str(value))
        return self

    def expect_toast(self, text: str | re.Pattern[str]) -> Self:
        """See the answer of an act."""
        expect(self.page.locator(".toast").first).to_contain_text(text)
        return self

    def expect_words(self, *texts: str | re.Pattern[str]) -> Self:
        """See words on the page."""
        for text in texts:
            expect(self.main).to_contain_text(text)
        return self

    def expect_items(self, *values: str) -> Self:
        """See exactly these items in the list of the queue's page, in this order, each by words of its value."""
        rows = self.page.locator("#items tbody tr:not([data-gone])")
        expect(rows).to_have_count(len(values))
        for row, value in zip(rows.all(), values, strict=True):
            expect(row).to_contain_text(value)
        return self

    def expect_usable(self, *looks: tuple[int, str]) -> Self:
        """See a page without accessibility findings that does not scroll sideways.

        `looks` are widths and color schemes; without one the page is looked at as it is.
        """
        for width, scheme in looks:
            self.page.set_viewport_size({"width": width, "height": 800})
            self.page.emulate_media(color_scheme=scheme)
            self.expect_usable()
        if looks:
            return self
        found = findings(self.page)
        assert found == [], found
        overflow = self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert overflow <= 0, overflow
        return self

    def reach(self, target: Locator, *, most: int = 80) -> Self:
        """Get to a control with the Tab key alone."""
        for _ in range(most):
            if target.evaluate("element => element === document.activeElement"):
                return self
            self.page.keyboard.press("Tab")
        raise AssertionError(f"{most} times Tab do not reach it")

    def _send(self, button: Locator) -> Self:
        """Press the button of a form; the page of a queue stays, with its list, where scripts run."""
        here = "b => 'htmx' in window && document.getElementById('items') && b.closest('dialog.side, .toasts')"
        if button.evaluate(f"b => Boolean(({here})(b))"):
            with self.page.expect_response(lambda answer: answer.request.method == "POST"):
                button.click()
        else:
            with self.page.expect_navigation():
                button.click()
        return self

    def _address(self, queue: str) -> str:
        return f"/queues/{quote(queue, safe='')}/" if queue else "/"


def values_of(queue: Any) -> list[bytes]:
    """Return the values of a queue's ready items, in order."""
    return [item.value for item in queue.items(limit=1_000).items]
