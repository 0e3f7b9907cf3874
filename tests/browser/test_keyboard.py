"""Every page of the site by keyboard, out of the URLconf: every control is reached, its focus seen, nothing a trap.

The same walk checks other rules of every page: numbers that change are in no live region, and people that ask for less
motion sees none.
"""

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.urls import reverse
from playwright.sync_api import Page

from queues import Store
from tests.accounts.matrix import PAGES
from tests.browser.conftest import NewPage
from tests.browser.wall.test_wall import make_board

#: Addresses of the table that lead to no page of their own: acts that are sent only, files, and answers for programs.
NO_PAGES = {
    "words",
    "accounts:logout", "people:role", "people:add-grant", "people:remove-grant", "people:active",
    "people:password", "people:revoke-token", "dashboard:arm", "dashboard:disarm", "dashboard:favorite",
    "dashboard:theme", "dashboard:fold", "dashboard:rows", "dashboard:queue-targets",
    "dashboard:queue-jobs", "dashboard:remove-targets",
    "dashboard:language", "dashboard:time-zone", "dashboard:start-sample", "dashboard:stop-sample",
    "dashboard:download", "dashboard:cancel-job", "dashboard:resume-job", "dashboard:undo-job", "dashboard:reveal",
    "dashboard:history-data", "dashboard:charts-data",
    "dashboard:list-age", "dashboard:audit-export", "dashboard:check-value",
    "dashboard:forget-template",
    "dashboard:put-back", "dashboard:restore", "wall:preview", "wall:mint", "wall:revoke",
}  # fmt: skip
#: What else one address shows, by its query.
QUERIES = {
    "dashboard:overview": ["", "?group=group", "?q=nothing-fits"],
    "dashboard:queue": ["", "?state=delayed", "?state=leased", "?state=dead", "?state=trash", "?q=x"],
    "dashboard:act": [f"?act={act}&id={{item}}" for act in ("move", "delete", "reprioritize", "delay", "lease")],
    "dashboard:bulk": ["?act=move&state=ready", "?act=delete&state=ready"],
    "dashboard:pop": ["?end=min", "?end=max"],
    "dashboard:palette": ["?q=jobs"],
}
#: Notes each control that gets the focus and what shows that, and what lies over it when the next key comes.
#: A bar with the same controls as one of `bars` was walked before. Returns this page's.
WALK = """(bars) => {
    const controls = 'a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex]';
    const named = (e) => e.outerHTML.replace(/\\s+/g, ' ').slice(0, 140);
    const group = (e) => {
        if (e.type !== 'radio') return e;
        const radios = [...document.querySelectorAll('input[type=radio]')];
        return radios.find((other) => other.form === e.form && other.name === e.name);
    };
    const open = (e) => !e.closest('[popover]:not(:popover-open), dialog:not([open]), [inert]');
    const bar = document.querySelector('header.bar');
    const told = (e) => [e.localName, e.className, e.name, e.pathname, e.textContent.trim()].join();
    const inBar = bar === null ? '' : [...bar.querySelectorAll(controls)].map(told).join();
    const knownBar = inBar !== '' && bars.includes(inBar);
    window.stops = () =>
        [...document.querySelectorAll(controls)]
            .filter((e) => e.tabIndex >= 0 && !e.disabled && open(e))
            .filter((e) => e.checkVisibility({ visibilityProperty: true, opacityProperty: false }));
    window.wanted = () => window.stops().filter((e) => !(knownBar && bar?.contains(e)));
    window.reached = new Set();
    window.dull = [];
    window.covered = [];
    window.looked = new Set();
    document.addEventListener('focusin', (event) => {
        const e = event.target;
        window.reached.add(group(e));
        const shown = [e, ...(e.labels ?? [])].some((each) => {
            const style = getComputedStyle(each);
            const outlined = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 1;
            return outlined || style.boxShadow !== 'none';
        });
        if (!shown && e.tabIndex >= 0) window.dull.push(named(e)); // the skip link's target is no control
    });
    window.look = () => { // asks for the layout as it is by now, whether it was drawn or not
        const e = document.activeElement;
        if (!window.reached.has(group(e))) return;
        window.looked.add(group(e));
        const box = e.getBoundingClientRect();
        const at = (y) => document.elementFromPoint(box.left + box.width / 2, y);
        const over = [at(box.top + 2), at(box.bottom - 2), at((box.top + box.bottom) / 2)];
        const isBar = (o) => o !== null && !o.contains(e) && !e.contains(o) && o.closest('header.bar, .actbar');
        if (over.every(isBar)) window.covered.push(named(e));
    };
    document.addEventListener('keydown', window.look, true);
    window.missed = () => window.wanted().filter((e) => !window.reached.has(group(e))).map(named);
    const own = (e) => e.type === 'datetime-local'; // has stops of its own within
    window.overlooked = () =>
        [...window.reached]
            .filter((e) => e.isConnected && e.tabIndex >= 0 && !own(e) && !window.looked.has(e))
            .map(named);
    return inBar;
}"""
#: Which element has the focus, and whether it is on the screen once that is drawn.
SKIP = """async () => {
    const e = document.activeElement;
    const seen = () => e.getBoundingClientRect().top >= 0;
    for (let frame = 0; frame < 60 && !seen(); frame += 1) await new Promise(requestAnimationFrame);
    return [e.className, seen()];
}"""
#: Numbers that change by themselves inside of what screen readers read out.
BUSY = """() => [...document.querySelectorAll('[aria-live], [role=status], [role=alert], [role=log], output')]
    .flatMap((region) => [...region.querySelectorAll(
        '[data-field], [data-total], [data-sum], [data-group-ready], [data-live], time[data-age], [data-countdown]')])
    .filter((e) => !e.closest('[aria-hidden=true]')).map((e) => e.outerHTML.slice(0, 140))"""
#: Whatever moves, or would when it is hovered or changed: elements whose transitions or animations take time.
MOVING = """() => {
    const long = (text) => text.split(',').some((each) => parseFloat(each) > 0.00002);
    const takes = (style) => long(style.transitionDuration) || long(style.animationDuration);
    const moves = (style) => takes(style) || style.scrollBehavior === 'smooth';
    const kinds = [null, '::before', '::after'];
    return [...document.querySelectorAll('*')]
        .filter((e) => kinds.some((kind) => moves(getComputedStyle(e, kind))))
        .map((e) => e.outerHTML.slice(0, 140))
        .concat(document.getAnimations()
            .filter((each) => each.effect?.getComputedTiming().duration > 1)
            .map((each) => String(each.effect.target?.outerHTML).slice(0, 140)));
}"""


@pytest.fixture
def addresses(page: Page, store: Store) -> Iterator[dict[str, str]]:
    """Every page of the site with something on it, by its view's name and query."""
    jobs = store.create_queue("jobs")
    jobs.push_many([(b"v%d" % n, n) for n in range(4)])
    item = jobs.push(b'{"x": [1, {"y": 2}]}', priority=9)
    jobs.push(b"later", priority=1, delay=timedelta(hours=1))
    jobs.lease(seconds=600, worker="w")
    mail = store.create_queue("mail", kind="fifo")
    mail.enqueue(b"x")
    store.targets.set("orders:*", dead=5)
    acts = store.actions("ann")
    acts.pop("jobs", end="min")
    job = acts.begin_bulk("delete", "mail", rate=1.0)
    acts.cancel_bulk(job.id)
    mail.pause(reason="", by="ops-2")
    slug = make_board(page, f"Keys {jobs.id} {item.id[:6]}")
    page.goto("/people/")
    person = page.locator("main a[href*='/people/']").evaluate_all(
        "links => links.map(link => link.getAttribute('href')).find(href => /people.[0-9]+/.test(href))"
    )
    known = {
        "name": "jobs",
        "item_id": item.id,
        "job_id": job.id,
        "slug": slug,
        "key": person.strip("/").split("/")[-1],
        "glob": "orders:*",
    }
    named = {"dashboard:detach": {"name": "foreign"}, "dashboard:resume": {"name": "mail"}}
    store.attach("foreign", prefix=b"keyboard")
    found = {}
    for name, row in PAGES.items():
        given = {key: known.get(key, text) for key, text in row.arguments.items()}
        path = reverse(name, kwargs=given | named.get(name, {}))
        for query in QUERIES.get(name, [""]):
            found[f"{name} {query}".strip()] = path + query.format(item=item.id)
    yield found
    store.detach("foreign")
    store.targets.remove("orders:*")


def walk(page: Page, bars: list[str], told: Callable[[str, object], None]) -> None:
    """Press Tab until every control of the page must have been reached, the skip link first; of equal `bars`, one."""
    bars.append(page.evaluate(WALK, bars))
    wanted = page.evaluate("window.wanted().length")
    session = page.context.new_cdp_session(page)
    tab = {"key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9}

    def press() -> None:
        session.send("Input.dispatchKeyEvent", {"type": "rawKeyDown", **tab})

    if not wanted:
        return
    if page.locator("a.skip").count():
        page.evaluate("document.body.tabIndex = -1; document.body.focus(); document.body.removeAttribute('tabindex')")
        press()
        skip = page.evaluate(SKIP)
        if skip != ["skip", True]:
            told("the skip link is not the first, or not seen", skip)
        page.keyboard.press("Enter")
        if page.evaluate("document.activeElement.id") != "main":
            told("the skip link leads nowhere", page.evaluate("document.activeElement.outerHTML.slice(0, 99)"))
    elif page.locator("header, nav").count():
        told("no skip link", "")
    keys = wanted
    for _again in range(3):
        for _key in range(keys + 3):
            press()
        page.evaluate("window.look()")
        missed = page.evaluate("window.missed()")
        if not missed:
            break
        keys = page.evaluate("window.stops().length")  # what came on the way, and the way around over the page's end
    if missed:
        told("not reached", missed)
    for what in ("dull", "covered", "overlooked()"):
        if faults := page.evaluate(f"[...new Set(window.{what})]"):
            told(what, faults)
    session.detach()


def is_whole(text: str) -> bool:
    """Whether it is a page, and not a part of one."""
    return text.lstrip().lower().startswith("<!doctype")


def test_every_page_is_used_by_keyboard_and_keeps_still(
    new_page: NewPage, signed_in: Any, addresses: dict[str, str]
) -> None:
    person, stranger = (new_page(storage_state=state) for state in (signed_in, None))
    found: dict[str, dict[str, Any]] = {}
    bars: list[str] = []
    for name, path in addresses.items():
        page = stranger if name == "accounts:login" else person
        if name.split(" ", maxsplit=1)[0] in NO_PAGES:
            head = page.request.get(path, max_redirects=0)
            html = head.headers.get("content-type", "").startswith("text/html")
            assert head.status != 200 or not html or not is_whole(head.text()), name
            continue
        answer = page.goto(path)
        assert answer.status == 200, name
        assert answer.request.redirected_from is None, name
        assert is_whole(answer.text()), name
        faults: dict[str, Any] = {}
        walk(page, bars, lambda what, seen, faults=faults: faults.update({what: seen}))
        for what, script in {"in a live region": BUSY, "moves": MOVING}.items():
            if seen := page.evaluate(script):
                faults[what] = seen
        if faults:
            found[name] = faults
    assert not found, json.dumps(found, indent=1)
    assert set(PAGES) >= NO_PAGES
