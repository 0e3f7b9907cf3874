"""The overview and the queue page change by themselves, and say honestly how fresh they are."""

import json
import re
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.conf import settings
from playwright.sync_api import Page, expect

from queues import Queue, Store, Transaction
from tests.browser.conftest import (
    NewPage,
    Site,
    Strict,
    failing_store,
    open_live,
    ready_of,
    reload_until_shown,
    sign_in,
    until,
    wait_live,
    wait_value,
)

CONNECTION_LOST = [r"WebSocket connection to", r"ERR_CONNECTION_REFUSED", r"net::ERR_"]

Message = dict[str, Any]


def tap(
    page: Page, change: Callable[[Message], Message | None] = lambda seen: seen, *, sent: list[Message] | None = None
) -> list[tuple[Any, Any]]:
    """Pass the server's messages through `change`, which may swallow one; return the ends of each connection."""
    ends: list[tuple[Any, Any]] = []

    def through(route: Any) -> None:
        server = route.connect_to_server()
        ends.append((route, server))

        def up(text: str) -> None:
            if sent is not None:
                sent.append(json.loads(text))
            server.send(text)

        def down(text: str) -> None:
            message = change(json.loads(text))
            if message is not None:
                route.send(json.dumps(message))

        route.on_message(up)
        server.on_message(down)

    page.route_web_socket(re.compile("/live/"), through)
    return ends


def test_a_push_from_another_process_shows_without_a_reload(page: Page, store: Store) -> None:
    jobs = store.create_queue("orders:jobs")
    open_live(page, "/")
    wait_value(page, ready_of("orders:jobs"), 0)
    page.evaluate("window.mark = 'the same document'")

    jobs.push_many([(b"first <b>item</b>", 2), (b"last", 7)])

    wait_value(page, ready_of("orders:jobs"), 2)
    row = page.locator('tr[data-queue="orders:jobs"]')
    expect(row.locator("[data-field=min] [data-part=value]")).to_have_text("first <b>item</b>")
    expect(row.locator("[data-field=max] [data-part=priority]")).to_have_text("7")
    expect(row.locator("[data-field=oldest]")).to_contain_text(re.compile(r"\d+(\.\d)? s"))
    expect(page.locator("[data-total=ready]")).to_have_text("2")
    expect(page).to_have_title("ok · Queues · pqadmin")
    assert page.evaluate("window.mark") == "the same document"


def test_the_first_queue_of_all_appears(page: Page, store: Store) -> None:
    open_live(page, "/")
    levels = page.locator(".sum .levels")
    expect(levels.locator(":scope > *").filter(visible=True)).to_have_text("–")
    store.create_queue("first").push(b"x", priority=1)
    wait_value(page, ready_of("first"), 1)
    expect(levels.locator(":scope > *").filter(visible=True)).to_have_text(re.compile(r"^1\s+ok$"))

    store.create_queue("second:part", kind="fifo").enqueue(b"y")
    wait_value(page, ready_of("second:part"), 1)
    link = page.locator('tr[data-queue="second:part"] a[data-part=link]')
    expect(link).to_have_text("second:part")
    assert link.get_attribute("href") == "/queues/second:part/"
    store.queue("second:part").enqueue(b"z")
    wait_value(page, ready_of("second:part"), 2)


def test_a_deleted_queue_is_marked_and_a_restored_one_is_back(page: Page, store: Store) -> None:
    store.create_queue("here").push(b"x", priority=1)
    store.create_queue("there")
    open_live(page, "/")

    trash_id = store.delete_queue("here")
    expect(page.locator('tr[data-queue="here"]')).to_have_attribute("data-level", "gone")
    expect(page.locator('tr[data-queue="here"] [data-field=verdict]')).to_have_text("gone")

    store.restore(trash_id)
    expect(page.locator('tr[data-queue="here"]')).to_have_attribute("data-level", "ok")


def test_both_ends_of_a_queue_page_are_live(page: Page, jobs: Queue) -> None:
    open_live(page, "/queues/jobs/")

    jobs.push_many([(b"v%d" % n, n) for n in range(7)])
    items = page.locator("[data-live-list=max] > [data-item]")
    expect(items).to_have_count(5)
    expect(items.first.locator("[data-part=value]")).to_have_text("v6")
    link = items.first.locator("a").get_attribute("href")
    assert link is not None
    assert re.fullmatch(r"/queues/jobs/items/[0-9a-f]{40}/", link)

    jobs.pop_max()
    expect(items.first.locator("[data-part=value]")).to_have_text("v5")
    expect(page.locator("section[data-queue=jobs] [data-field=ready]").first).to_have_text("6")
    expect(page).to_have_title(re.compile(r"^\w+ \(6\) · jobs"))


def test_why_a_queue_cannot_be_read_shows_in_the_language_of_the_page(page: Page, store: Store, site: Site) -> None:
    jobs = store.create_queue("jobs")
    page.context.add_cookies([{"name": settings.LANGUAGE_COOKIE_NAME, "value": "zh-hans", "url": site.address}])
    open_live(page, "/")

    def write(tr: Transaction, record: bytes) -> None:
        tr.set(store.context.keyspace.configs.key(jobs.id), record)
        tr.add(store.context.keyspace.queue(jobs.id).change, 1)

    whole = store.read(lambda tr: tr.get(store.context.keyspace.configs.key(jobs.id)).wait())
    store.transact(lambda tr: write(tr, b"\x07"))
    state = page.locator('tr[data-queue="jobs"] [data-field=verdict]')
    expect(state).to_contain_text("无法读取：存储中有一条记录由更新的 pqadmin 写入")
    expect(state).not_to_contain_text("record")
    store.transact(lambda tr: write(tr, whole))
    expect(state).not_to_contain_text("无法读取")


def test_the_offer_to_resume_goes_when_another_person_has_resumed(page: Page, jobs: Queue) -> None:
    page.goto("/queues/jobs/pause/")
    page.locator("[name=reason]").fill("deploy")
    page.locator("form[action$='/pause/'] button.primary").click()
    toast = page.locator(".toast", has=page.locator("form[action$='/resume/']"))
    wait_live(page)
    expect(page.locator(".verdict [data-field=reasons]")).to_contain_text("paused by")
    expect(toast).to_be_visible()
    jobs.resume()
    expect(toast).to_be_hidden()


def test_a_pause_shows_with_its_reason(page: Page, jobs: Queue) -> None:
    open_live(page, "/")
    jobs.pause(reason="ledger closing, " * 30 + "ask Ann", by="ops-2")
    row = page.locator('tr[data-queue="jobs"]')
    expect(row).to_have_attribute("data-mark", "paused")
    expect(row.locator("[data-field=verdict]")).to_contain_text("paused by ops-2")
    expect(row.locator("[data-field=verdict]")).to_contain_text("ledger closing")
    expect(row.locator("[data-field=verdict]")).not_to_contain_text("ask Ann")
    expect(row.locator("[data-field=trend]")).to_have_text("paused")
    open_live(page, "/queues/jobs/")
    age = page.locator(".sum > div").filter(has=page.locator("[data-field=oldest]"))
    expect(age).to_contain_text("oldest age")
    expect(age).to_contain_text("not claimable while paused")
    jobs.resume()
    expect(age).to_contain_text("the longest wait now")
    jobs.pause(reason="ledger closing, " * 30 + "ask Ann", by="ops-3")
    expect(page.locator(".verdict [data-field=reasons]")).to_contain_text("paused by ops-3")
    expect(page.locator(".verdict [data-field=reasons]")).to_contain_text("ask Ann")


def test_the_verdict_is_live_on_the_queues_page_and_in_the_titles_of_tabs(page: Page, jobs: Queue) -> None:
    jobs.configure(max_attempts=1)
    jobs.push_many([(b"x", 1)] * 2)
    open_live(page, "/queues/jobs/")
    reasons = page.locator("[data-field=reasons] > li:not([hidden])")
    expect(reasons).to_have_text(re.compile("nothing taken yet .* Start a worker"))
    expect(page).to_have_title("ok (2) · jobs · pqadmin")
    jobs.release(jobs.lease(seconds=60), reason="ValueError: no")
    expect(reasons).to_have_text(re.compile(r"1 dead\s+seen first at .* Open the dead items"))
    expect(reasons).to_have_attribute("data-level", "warning")
    expect(page.locator(".verdict-level")).to_have_attribute("data-level", "warning")
    expect(page).to_have_title("warning (1) · jobs · pqadmin")
    jobs.pause(reason="deploy", by="ada")
    expect(reasons).to_have_text([re.compile("1 dead"), re.compile("paused by ada.*deploy")])
    reasons.first.get_by_role("link").click()
    expect(page).to_have_url(re.compile("state=dead"))
    open_live(page, "/")
    expect(page).to_have_title("1 warning · Queues · pqadmin")
    page.get_by_role("link", name="1 warning").click()
    expect(page).to_have_url(re.compile("level:warning"))
    expect(page.locator('tr[data-queue="jobs"]')).to_have_attribute("data-level", "warning")


def test_ages_in_words_go_on_while_nothing_changes(page: Page, store: Store) -> None:
    store.create_queue("paused").pause(reason="", by="ops-2")
    store.create_queue("stuck").push(b"x", priority=1)
    store.create_queue("drifted").push(b"x", priority=1)
    a_while_ago = int(time.time() * 1000) - 15_000
    reason = {"level": "warning", "since": a_while_ago, "value": None, "limit": 900}
    after_a_while = {
        "stuck": {"level": "critical", "reasons": [{**reason, "code": "no-consumer"}]},
        "drifted": {"level": "warning", "reasons": [{**reason, "code": "old"}], "oldest": a_while_ago},
    }

    def aged(seen: Message) -> Message:
        for row in seen.get("rows", ()):
            row |= after_a_while.get(row["name"], {})
        return seen

    def goes_on(name: str, words_now: str) -> None:
        words = page.locator(f"[data-queue={name}] :is([data-field=verdict], [data-field=reasons])")
        expect(words).to_contain_text(re.compile(words_now))
        before = words.inner_text()
        page.clock.run_for(10_000)  # a coarse step
        expect(words).not_to_have_text(before)

    page.clock.install()
    tap(page, aged)
    for address in ("/queues/paused/", "/"):
        open_live(page, address)
        goes_on("paused", r"paused by ops-2, <?[\d.]+ s ago")
    goes_on("stuck", r"no consumer for \d+ (s|min)")
    goes_on("drifted", r"oldest waits \d+ (s|min)")


def test_the_row_of_a_deleted_queue_leaves_after_a_while(page: Page, store: Store) -> None:
    store.create_queue("stays")
    store.create_queue("goes")
    page.clock.install()
    open_live(page, "/")
    store.delete_queue("goes")
    row = page.locator('tr[data-queue="goes"]')
    expect(row).to_have_attribute("data-level", "gone")
    page.locator('tr[data-queue="stays"]').hover()
    row.evaluate("row => { row.dataset.gone -= 31000 }")
    page.clock.run_for(5_000)
    expect(row).to_have_count(1)
    page.mouse.move(1, 1)
    expect(row).to_have_count(0)
    expect(page.locator('tr[data-queue="stays"]')).to_have_count(1)


def test_what_depends_on_a_pause_follows_it(page: Page, jobs: Queue) -> None:
    open_live(page, "/queues/jobs/")
    resume, pause = page.get_by_role("button", name="Resume"), page.get_by_role("link", name="Pause…")
    note = page.get_by_text("the queue is paused; pushes go on")
    page.locator("[data-drawer]").click()
    expect(page.locator("#drawer")).to_be_visible()
    expect(pause).to_be_visible()
    expect(resume).to_be_hidden()
    expect(note).to_be_hidden()
    jobs.pause(reason="", by="ops-2")
    expect(resume).to_be_visible()
    expect(pause).to_be_hidden()
    expect(note).to_be_visible()
    page.keyboard.press("Escape")
    resume.click()
    expect(pause).to_be_visible()


def test_the_sums_of_groups_are_live(page: Page, store: Store) -> None:
    orders = store.create_queue("orders:jobs")
    orders.push(b"x", priority=1)
    store.create_queue("mail:out")
    open_live(page, "/?group=group")
    sums = {label: page.locator(f'tr[data-group="{label}"] [data-group-ready]') for label in ("mail:", "orders:")}
    expect(sums["orders:"]).to_have_text("1")
    expect(sums["mail:"]).to_have_text("0")
    orders.push_many([(b"y", 2)] * 4)
    expect(sums["orders:"]).to_have_text("5")
    expect(sums["mail:"]).to_have_text("0")


def test_old_sums_say_so(page: Page, jobs: Queue) -> None:
    late = [0]

    tap(page, lambda seen: seen | {"as_of": seen["as_of"] - late[0]} if "as_of" in seen else seen)
    open_live(page, "/")
    note = page.locator("[data-sums-age]")
    expect(note).to_be_hidden()
    late.append(late.pop() + 40_000)
    expect(note).to_contain_text(re.compile(r"as of 4\d s ago"))
    late[0] = 0
    jobs.push(b"x", priority=1)  # else the next word of the server is two seconds away
    expect(note).to_be_hidden()


def test_numbers_grow_no_younger_by_a_server_that_cannot_read_its_store(
    page: Page, store: Store, strict: Strict
) -> None:
    """One that began meanwhile has looked in vain for a moment only."""
    strict.allowed += CONNECTION_LOST
    store.create_queue("jobs")
    away: list[str] = []
    failing_store(page, away)
    page.clock.install()
    open_live(page, "/")
    away.append("away")
    fresh = page.locator("[data-fresh]").first
    expect(fresh).to_have_attribute("title", "away")
    page.clock.fast_forward("10:00")
    page.clock.run_for(15_000)
    away.append("still away")
    expect(fresh).to_have_attribute("title", "still away")
    expect(fresh).to_contain_text(re.compile(r"1\d min"))
    page.reload()
    expect(fresh).to_have_attribute("title", "still away")
    expect(fresh.locator("[data-part=ago]")).to_have_text("")


def test_changing_the_password_in_another_tab_keeps_this_one_live(new_page: NewPage, jobs: Queue, site: Site) -> None:
    old, new = "correct horse battery", "staple correct horse"
    site.manage("create_user", "paula", "--role", "viewer", "--password-stdin", stdin=f"{old}\n")
    page = new_page(storage_state=None)
    sign_in(page, "paula", old)
    open_live(page, "/")
    page.evaluate("window.mark = 'the same document'")
    other = page.context.new_page()
    other.goto("/accounts/password/")
    other.fill("input[name=old_password]", old)
    other.fill("input[name=new_password1]", new)
    other.fill("input[name=new_password2]", new)
    with page.expect_event("websocket"):
        other.locator("input[name=new_password2]").press("Enter")
    expect(other.get_by_text("Your password is changed")).to_be_visible()

    wait_live(page)
    jobs.push(b"x", priority=1)
    wait_value(page, ready_of("jobs"), 1)
    assert page.evaluate("window.mark") == "the same document"


def test_rates_rise_and_fall_back_to_zero(page: Page, jobs: Queue) -> None:
    """As the server tells them: by itself it would do so ten seconds later (see `tests/live/test_reads.py`)."""
    over: list[bool] = []

    def fall(seen: Message) -> Message:
        for row in seen.get("rows", ()) if over else ():
            row["in"] = 0
        return seen

    tap(page, fall)
    open_live(page, "/")
    rate = page.locator('tr[data-queue="jobs"] [data-field=rate-in]')
    expect(rate).to_have_text("0")
    jobs.push_many([(b"x", 1)] * 500)
    expect(rate).to_have_attribute("data-value", re.compile(r"^[1-9]"))
    over.append(True)
    jobs.push(b"x", 1)
    expect(rate).to_have_text("0")


def test_a_killed_and_restarted_server_is_back_without_a_reload(
    page: Page, store: Store, site: Site, strict: Strict
) -> None:
    strict.allowed += CONNECTION_LOST
    jobs = store.create_queue("jobs")
    open_live(page, "/")
    page.evaluate("window.mark = 'the same document'")

    site.kill()
    fresh = page.locator("[data-fresh]")
    expect(fresh).to_have_attribute("data-state", "reconnecting")
    expect(page.locator(ready_of("jobs"))).to_have_text("0")
    expect(page).to_have_title(re.compile(r"^ok\? · Queues"))
    jobs.push(b"pushed while it was away", priority=1)
    site.start()

    wait_value(page, ready_of("jobs"), 1)
    expect(fresh).to_have_attribute("data-state", "live")
    assert page.evaluate("window.mark") == "the same document"


def test_a_tab_left_open_across_a_deploy_asks_for_a_reload(page: Page, new_page: NewPage, jobs: Queue) -> None:
    """The server that it comes back to has rows that its scripts cannot read: it must not call itself live."""
    deployed: list[str] = []
    sockets = tap(page, lambda seen: seen | {"release": deployed[0]} if deployed and seen["t"] == "hello" else seen)
    page.clock.install()
    for each in (page, other := new_page()):
        each.goto("/")
        wait_live(each)

    deployed.append("0123456789ab")
    sockets[0][0].close(code=1012)
    fresh = page.locator("[data-fresh]")
    expect(fresh).to_have_attribute("data-state", "offline")
    expect(fresh).to_contain_text("reload the page")
    # What filters and windows bring is the new server's, in its own markup.
    page.evaluate("document.querySelector('tr[data-queue=jobs] .star').remove()")
    jobs.push(b"x", priority=1)
    wait_value(other, ready_of("jobs"), 1)
    page.clock.run_for(60_000)
    expect(page.locator(ready_of("jobs"))).to_have_text("0")
    expect(fresh).to_contain_text("reload the page")
    assert len(sockets) == 2

    deployed.clear()
    page.reload()
    wait_live(page)
    wait_value(page, ready_of("jobs"), 1)


def test_a_page_whose_words_do_not_come_stays_as_it_was_drawn_until_they_do(
    page: Page, jobs: Queue, strict: Strict
) -> None:
    jobs.push(b"x", priority=1)
    jobs.pause(reason="ledger closing", by="ops-2")
    away = [True]
    asked: list[str] = []

    def words(route: Any) -> None:
        asked.append(route.request.url)
        if away:
            route.abort()
        else:
            route.continue_()

    strict.allowed.append("ERR_FAILED")
    page.route("**/words/**", words)
    page.clock.install()
    page.goto("/")
    state = page.locator('tr[data-queue="jobs"] [data-field=verdict]')
    reload_until_shown(page, state.filter(has_text="paused by ops-2"))
    fresh = page.locator("[data-fresh]")
    drawn = fresh.inner_text()
    assert "as of" in drawn
    until(page, lambda: len(asked) >= 3)
    jobs.push(b"y", priority=1)
    page.clock.run_for(2_000)
    until(page, lambda: len(asked) >= 4)
    expect(state).to_contain_text("paused by ops-2")
    assert fresh.inner_text() == drawn
    assert not re.search(r"level-|reason-|fresh-|trend-", page.locator("body").inner_text())

    away.clear()
    wait_value(page, ready_of("jobs"), 2)
    expect(fresh).to_have_attribute("data-state", "live")
    expect(fresh).to_contain_text("live")
    expect(state).to_contain_text("paused by ops-2")


def test_freshness_goes_stale_when_the_server_falls_silent(page: Page, store: Store, strict: Strict) -> None:
    store.create_queue("jobs")
    held: list[Any] = []
    tap(page, lambda seen: None if held else seen)
    page.clock.install()
    open_live(page, "/")

    held.append(True)
    page.clock.pause_at(page.evaluate("Date.now() / 1000") + 5)
    page.clock.run_for(1_000)  # after twelve seconds of silence it would give up the connection
    fresh = page.locator("[data-fresh]")
    expect(fresh).to_have_attribute("data-state", "stale")
    expect(fresh).to_contain_text(re.compile(r"stale\s*\d+ s"))
    expect(page.locator(ready_of("jobs"))).to_have_text("0")
    held.clear()
    page.clock.resume()
    expect(fresh).to_have_attribute("data-state", "live")


#: The machine's own clock runs ahead of the steady one by so many hours more: the machine slept, or its clock was set.
AHEAD = "hours => { const now = Date.now; Date.now = () => now() + hours * 3600e3; }"


def test_numbers_that_slept_with_the_machine_are_old_and_fetched_anew_at_once(page: Page, store: Store) -> None:
    """Its steady clock did not run meanwhile."""
    store.create_queue("jobs").push(b"x", priority=1)
    held: list[Any] = []
    ends = tap(page, lambda seen: None if held and seen["t"] != "hello" else seen)
    open_live(page, "/")
    held.append(True)
    page.evaluate(AHEAD, 8)
    fresh = page.locator("[data-fresh]")
    expect(fresh).to_have_attribute("data-state", "stale")
    expect(fresh).to_contain_text("8 h")
    expect(page).to_have_title(re.compile(r"^ok\? · Queues"))
    until(page, lambda: len(ends) == 2, "no new connection is opened")
    held.clear()
    wait_live(page)


def test_a_clock_that_is_set_makes_numbers_neither_old_for_long_nor_younger(page: Page, store: Store) -> None:
    jobs = store.create_queue("jobs")
    jobs.push(b"x", priority=1)
    held: list[Any] = []
    tap(page, lambda seen: None if held and seen["t"] != "hello" else seen)
    page.clock.install()
    open_live(page, "/")
    fresh, oldest = page.locator("[data-fresh]"), page.locator('tr[data-queue="jobs"] [data-field=oldest]')
    held.append(True)
    page.evaluate(AHEAD, 8)
    expect(fresh).to_contain_text("8 h")
    held.clear()
    wait_live(page)
    expect(oldest).to_have_text(re.compile(r"^[3-9]\.\d s|^\d\d s"))
    held.append(True)
    page.evaluate(AHEAD, -8)
    page.clock.pause_at(page.evaluate("Date.now() / 1000") + 5)
    page.clock.run_for(1_000)  # after twelve seconds of silence it would give up the connection
    expect(fresh).to_have_attribute("data-state", "stale")
    expect(fresh).to_contain_text(re.compile(r"stale\s*\d+ s"))
    expect(oldest).to_have_text(re.compile(r"^\d+ s|^[5-9]\.\d s"))
    held.clear()
    page.clock.resume()
    jobs.push(b"y", priority=1)  # else the next word of the server is two seconds away
    wait_live(page)


def test_a_gap_is_healed_by_a_whole_frame(page: Page, store: Store) -> None:
    jobs, other = store.create_queue("jobs"), store.create_queue("other")
    swallow: list[str] = []
    sent: list[Message] = []

    def lossy(seen: Message) -> Message | None:
        if swallow and seen["t"] == "frame" and any(row["name"] == swallow[0] for row in seen["rows"]):
            swallow.clear()
            return None
        return seen

    tap(page, lossy, sent=sent)
    open_live(page, "/")

    swallow.append("jobs")
    jobs.push(b"its frame is lost", priority=1)
    until(page, lambda: not swallow)
    other.push(b"the next frame shows the gap", priority=1)

    wait_value(page, ready_of("jobs"), 1)
    assert {"t": "resync"} in sent


def test_a_hidden_tab_suspends_and_comes_back_whole(page: Page, new_page: NewPage, jobs: Queue) -> None:
    sent: list[Message] = []
    heard: list[str] = []

    def hear(seen: Message) -> Message:
        heard.append(seen["t"])
        return seen

    ends = tap(page, hear, sent=sent)
    for each in (page, other := new_page()):
        each.goto("/")
        wait_live(each)
    hide = "value => { Object.defineProperty(document, 'hidden', {configurable: true, get: () => value}); \
            document.dispatchEvent(new Event('visibilitychange')) }"
    page.evaluate(hide, True)
    until(page, lambda: {"t": "visible", "visible": False} in sent)
    ((_route, server),) = ends
    server.send(json.dumps({"t": "ack", "seq": 1_000_000}))
    until(page, lambda: "error" in heard)  # by then it knows that the page is hidden, too
    before = heard.count("frame")
    jobs.push(b"x", priority=1)
    wait_value(other, ready_of("jobs"), 1)
    assert heard.count("frame") == before

    page.evaluate(hide, False)
    wait_value(page, ready_of("jobs"), 1)


def test_an_idle_page_makes_no_request(page: Page, store: Store) -> None:
    store.create_queue("jobs").push(b"x", priority=1)
    heard: list[str] = []
    page.on("websocket", lambda socket: socket.on("framereceived", lambda text: heard.append(json.loads(text)["t"])))
    page.clock.install()
    open_live(page, "/")
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    heard.clear()
    until(page, lambda: "beat" in heard)
    page.clock.run_for(10_000)
    until(page, lambda: "beat" in heard[1:])
    assert requests == []


def test_signing_out_in_another_tab_shows(new_page: NewPage, store: Store, site: Site, strict: Strict) -> None:
    strict.allowed += CONNECTION_LOST  # it may try once more before it has asked why
    store.create_queue("jobs")
    page = new_page(storage_state=None)
    sign_in(page, "admin", site.password)
    open_live(page, "/")
    other = page.context.new_page()
    other.goto("/")
    wait_live(other)  # a page that is left while it connects warns of it
    other.locator("form[action='/accounts/logout/'] button").evaluate("button => button.form.requestSubmit()")
    other.wait_for_url("**/accounts/login/**")

    fresh = page.locator("[data-fresh]")
    expect(fresh).to_have_attribute("data-state", "offline")
    expect(fresh).to_contain_text("signed out")
    expect(page.locator(ready_of("jobs"))).to_have_text("0")


def test_a_long_life_leaves_no_listener_or_element_behind(page: Page, jobs: Queue) -> None:
    open_live(page, "/")
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")

    def counts() -> dict[str, float]:
        session.send("HeapProfiler.collectGarbage")
        metrics = session.send("Performance.getMetrics")["metrics"]
        return {
            metric["name"]: metric["value"] for metric in metrics if metric["name"] in ("Nodes", "JSEventListeners")
        }

    for depth in range(1, 11):
        jobs.push(b"x", priority=depth)
        wait_value(page, ready_of("jobs"), depth)
    before = counts()
    for depth in range(11, 41):
        jobs.push(b"x", priority=depth)
        wait_value(page, ready_of("jobs"), depth)
    after = counts()
    assert after["JSEventListeners"] <= before["JSEventListeners"]
    assert after["Nodes"] <= before["Nodes"] + 20


def test_a_row_says_what_its_links_are_about_and_counts_that_come_up(page: Page, store: Store) -> None:
    jobs = store.create_queue("eu:jobs")
    jobs.push(b"x", priority=1)
    page.goto("/")
    row = page.locator('tr[data-queue="eu:jobs"]')
    expect(row.locator("a[data-part=link]")).to_have_attribute("title", "eu:jobs")
    expect(row.locator(".star")).to_have_attribute("aria-label", re.compile("^Favorite: eu:jobs$"))
    expect(row.locator(".also")).to_have_count(0)
    jobs.push(b"y", priority=2, delay=timedelta(hours=1))
    expect(row.locator(".also")).to_have_text(re.compile(r"^1 delayed\s*in "))
    jobs.lease(seconds=600, worker="w")
    expect(row.locator(".also").nth(1)).to_have_text(re.compile("^1 leased"))
    expect(row.locator(".also").nth(0)).to_have_text(re.compile("^1 delayed"))


#: Milliseconds to lay the page out after one number of a row changed, and after every style did: the least of ten.
_COSTS = """() => {
    const number = document.querySelector("tr[data-queue] [data-field=ready]");
    const least = (act) => Math.min(...Array.from({length: 10}, (_, n) => {
        document.body.offsetHeight;
        const began = performance.now();
        act(n);
        document.body.offsetHeight;
        return performance.now() - began;
    }));
    const one = least((n) => { number.dataset.value = n % 2; number.textContent = n; });
    return [one, least((n) => document.documentElement.style.setProperty("--any", n))];
}"""


def test_a_number_that_changes_costs_no_more_than_its_row(page: Page, store: Store) -> None:
    for n in range(60):
        store.create_queue(f"group:{n}").push_many([(b"x", 1)] * 3)
    open_live(page, "/")
    one, whole = page.evaluate(_COSTS)
    assert one < whole / 5, "a selector with :has() styles the whole page anew for each number"
