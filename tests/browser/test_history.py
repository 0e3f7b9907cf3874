"""A queue's history in a browser: drawn at once, newer after a change, zoomed by its address, and without scripts."""

import re
import time
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

from playwright.sync_api import Page, Route, expect

from queues import Queue, Store
from tests.browser.axe import findings
from tests.browser.conftest import NewPage, open_live, until, wait_live
from tests.browser.test_live import Message, tap

HERE = "/queues/jobs/history/"
#: Notes the texts left of each chart, from the lowest to the highest.
_DRAWN = """
    const draw = CanvasRenderingContext2D.prototype.fillText;
    CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
        if (this.textAlign === "right") {
            const drawn = this.canvas.drawn ??= new Map();
            drawn.set(text, y);
            this.canvas.levels = [...drawn].sort((a, b) => b[1] - a[1]).map(([text]) => text);
        }
        return draw.apply(this, arguments);
    };
"""


def recorded(store: Store) -> None:
    recorder = store.recorder()
    recorder.look()
    recorder.flush()


def hide(page: Page, hidden: object) -> None:
    """Let a tab seem to be hidden, or shown again."""
    page.evaluate(
        """hidden => { Object.defineProperty(document, 'hidden', {configurable: true, get: () => hidden});
            document.dispatchEvent(new Event('visibilitychange')) }""",
        hidden,
    )


def legend(page: Page, chart: str, label: str) -> str:
    """Return the number of a line as the legend of a chart has it."""
    row = page.locator(f"[data-chart={chart}] .u-series").filter(has=page.get_by_text(label, exact=True))
    return row.locator(".u-value").inner_text()


def test_charts_are_drawn_at_once_and_anew_after_a_change_only(new_page: NewPage, store: Store, jobs: Queue) -> None:
    jobs.push_many([(b"x", 1)] * 50)
    recorded(store)
    page = new_page()
    page.goto(HERE)
    expect(page.locator(".chart canvas").first).to_be_visible()
    wait_live(page)
    assert findings(page) == []
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    with page.expect_response(lambda response: "/history/data/" in response.url) as answer:
        jobs.pop_min()
    assert answer.value.json()["charts"]["depth"]["columns"][0][-1] == 49
    expect(page.locator("[data-field=ready]")).to_have_text("49")
    assert len(asked) == 1
    page.locator("summary").first.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".numbers table").first).to_be_visible()

    phone = new_page(viewport={"width": 320, "height": 700}, java_script_enabled=False)
    phone.goto(HERE)
    phone.locator("summary").first.click()
    expect(phone.locator(".numbers td").first).to_have_text("49")
    assert phone.evaluate("document.documentElement.scrollWidth") <= 320


def test_a_legend_has_the_newest_numbers_at_rest_and_those_at_the_cursor_in_every_chart(
    page: Page, store: Store
) -> None:
    jobs = store.create_queue("jobs", bands=[10, 20])
    jobs.push_many([(b"x", 1)] * 3 + [(b"x", 15)] + [(b"x", 30)] * 996)
    recorded(store)
    page.goto(f"{HERE}?span=1h")
    assert legend(page, "depth", "ready") == "1\u202f000"
    all_but_few = "996 · >\u202f99\u202f%"
    assert (legend(page, "mix", "<10"), legend(page, "mix", "≥20")) == ("3 · 0.3\u202f%", all_but_few)
    depth, mix = page.locator("[data-chart=depth]"), page.locator("[data-chart=mix]")
    depth.locator(".u-over").hover(position={"x": 40, "y": 40})
    assert legend(page, "depth", "ready") == "–", "nothing was recorded then"
    assert legend(page, "mix", "≥20") == "–", "one cursor over all charts"
    page.mouse.move(1, 1)
    assert legend(page, "mix", "≥20") == all_but_few
    depth.focus()
    page.keyboard.press("End")
    assert legend(page, "depth", "ready") == "1\u202f000"
    page.keyboard.press("ArrowLeft")
    assert legend(page, "depth", "ready") == "1\u202f000", "there is but one moment"
    page.keyboard.press("Home")
    times = {part.locator(".u-series").first.inner_text() for part in (depth, mix)}
    assert len(times) == 1, "the same moment in both"
    page.keyboard.press("Escape")
    assert legend(page, "depth", "ready") == "1\u202f000"


def test_a_legend_at_rest_tells_of_when_its_numbers_are(page: Page, store: Store) -> None:
    """As after a worker took all: what is empty now is told so, and the last waits with their time."""
    context, at = store.context, [time.time() - 1800.0]
    past = Store(context.kv, url=store.url, keyspace=context.keyspace, clock=lambda: at[0])
    jobs, recorder = past.create_queue("jobs"), past.recorder(count=lambda: at[0])
    jobs.push(b"x", priority=1)
    recorder.look()
    at[0] += 30
    jobs.pop_min()
    recorder.look()
    at[0] += 600
    jobs.push(b"x", priority=1, delay=3600)
    recorder.look()
    recorder.flush()
    page.goto(f"{HERE}?span=1h")
    times = {c: legend(page, c, "UTC") for c in ("depth", "oldest", "waits")}
    assert legend(page, "oldest", "oldest age") == "–", "nothing waits now"
    assert legend(page, "waits", "half") == "32 s", "at most, as histories keep it"
    assert times["oldest"] == times["depth"] >= times["waits"]


def test_a_legend_names_the_zone_of_a_moment_before_clocks_were_turned(new_page: NewPage, store: Store) -> None:
    store.create_queue("jobs").push(b"x", priority=1)
    recorded(store)
    page = new_page(timezone_id="America/New_York")
    summer = datetime.now(ZoneInfo("America/New_York")).utcoffset() == timedelta(hours=-4)
    page.goto(f"{HERE}?span=1h")
    assert "UTC" not in page.locator("[data-chart=depth] .u-series").first.locator(".u-value").inner_text()
    page.clock.set_fixed_time(datetime(2035, 1 if summer else 7, 15, tzinfo=UTC))
    page.goto(f"{HERE}?span=1h")
    told = page.locator("[data-chart=depth] .u-series").first
    expect(told.locator(".u-value")).to_have_text(re.compile("UTC−4$" if summer else "UTC−5$"))
    expect(told.locator(".u-label")).to_have_text("UTC−5" if summer else "UTC−4")


def test_axes_begin_at_zero_and_tell_each_step_exactly(page: Page, store: Store) -> None:
    """As where seven items come in eight seconds: steps of a quarter a second."""
    context, at = store.context, [time.time() - 540.0]
    past = Store(context.kv, url=store.url, keyspace=context.keyspace, clock=lambda: at[0])
    jobs, recorder = past.create_queue("jobs"), past.recorder(count=lambda: at[0])
    while at[0] < time.time() - 10:
        jobs.push_many([(b"x", 1)] * 7)
        recorder.look()
        at[0] += 8
    recorder.flush()
    page.add_init_script(_DRAWN)
    page.goto(f"{HERE}?span=1h")
    for chart in ("depth", "rates", "oldest"):
        expect(page.locator(f"[data-chart={chart}] canvas")).to_be_visible()
        told = page.locator(f"[data-chart={chart}]").evaluate("(chart) => chart.querySelector('canvas').levels")
        assert re.fullmatch(r"0|0\.0 s", told[0]), (chart, told)
        seconds = [float(re.sub(r"[^\d.]", "", text)) * (60 if "min" in text else 1) for text in told]
        steps = [round(later - earlier, 6) for earlier, later in pairwise(seconds)]
        assert len(told) > 1
        assert len(set(steps)) == 1, (chart, told)


def test_zooming_changes_the_address_and_every_chart_and_can_be_taken_back(page: Page, store: Store) -> None:
    store.create_queue("jobs").push_many([(b"x", 1)] * 20)
    recorded(store)
    open_live(page, f"{HERE}?span=6h")
    over = page.locator("[data-chart=depth] .u-over")
    box = over.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.75, box["y"] + 30, steps=3)
    page.mouse.up()
    page.wait_for_url(re.compile(r"from=.+Z&to=.+Z"))
    expect(page.locator("[data-range][aria-current]")).to_have_count(0)
    zoomed = page.url
    expect(page.locator("input[name=from]")).not_to_have_value("")
    expect(page.locator(".chart canvas")).to_have_count(page.locator("[data-chart]").count())
    page.locator("[data-chart=rates]").focus()
    page.keyboard.press("-")
    page.wait_for_url(lambda url: url != zoomed)
    expect(page.locator("[data-chart=rates]")).to_be_focused()
    page.go_back()
    page.wait_for_url(zoomed)
    page.go_back()
    page.wait_for_url(re.compile("span=6h"))
    expect(page.locator("[data-range][aria-current]")).to_have_text("6 h")
    page.get_by_role("link", name="24 h").click()
    page.wait_for_url(re.compile("span=24h"))
    expect(page.locator("[data-range][aria-current]")).to_have_text("24 h")
    page.goto(zoomed)
    expect(page.locator("[data-range][aria-current]")).to_have_count(0)
    page.locator("[data-chart=depth] .u-over").dblclick()
    page.wait_for_url(re.compile("span=6h"))


def test_a_range_is_picked_in_the_readers_zone_without_scripts_too(new_page: NewPage, store: Store) -> None:
    store.create_queue("jobs").push(b"x", priority=1)
    recorded(store)
    page = new_page(timezone_id="Asia/Kolkata")
    page.goto(HERE)
    page.goto(HERE)  # by now the browser's zone is known
    began = store.now() - timedelta(hours=3) + timedelta(hours=5, minutes=30)
    page.locator("input[name=from]").fill(began.strftime("%Y-%m-%dT%H:%M:%S"))
    page.get_by_role("button", name="Show").click()
    page.wait_for_url(re.compile((began - timedelta(hours=5, minutes=30)).strftime("from=%Y-%m-%dT%H:%M:%S")))
    assert page.locator("input[name=from]").input_value().startswith(began.strftime("%Y-%m-%dT%H:%M"))


def test_the_queue_page_leads_from_its_last_hour_to_the_history(page: Page, store: Store) -> None:
    store.create_queue("jobs").push_many([(b"x", 1)] * 20)
    recorded(store)
    open_live(page, "/queues/jobs/")
    assert legend(page, "depth", "ready") == "20"
    assert findings(page) == []
    store.queue("jobs").pop_many(4)
    expect(page.locator("[data-chart=depth] .u-series").nth(1)).to_contain_text("16")
    page.locator("[data-chart=depth]").focus()
    page.keyboard.press("+")
    page.wait_for_url(re.compile(r"/history/\?from="))
    expect(page.locator("[data-chart=oldest] canvas")).to_be_visible()


def test_charts_of_all_queues_are_loaded_when_they_are_unfolded(page: Page, store: Store) -> None:
    for name, depth in (("jobs", 20), ("mail", 5)):
        store.create_queue(name).push_many([(b"x", 1)] * depth)
    open_live(page, "/")
    recorded(store)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    assert page.evaluate("typeof uPlot") == "undefined", "no code of charts before one is shown"
    page.locator(".all-charts > summary").click()
    expect(page.locator("[data-chart=depth] canvas")).to_be_visible()
    expect(page.get_by_role("heading", name="Top movers")).to_be_visible()
    assert any("uPlot" in url for url in asked)
    assert findings(page) == []
    page.locator("[data-chart=rates]").focus()
    page.keyboard.press("+")
    page.wait_for_url(re.compile(r"/charts/\?from="))
    page.get_by_role("link", name="24 h").click()
    page.wait_for_url(re.compile(r"/charts/\?span=24h"))
    expect(page.locator("[data-chart=depth] canvas")).to_be_visible()


def test_single_keys_pass_over_the_rows_of_charts_that_were_shut_again(page: Page, store: Store) -> None:
    store.create_queue("jobs").push_many([(b"x", 1)] * 20)
    open_live(page, "/")
    recorded(store)
    page.locator(".all-charts > summary").click()
    expect(page.locator("#movers a")).to_have_text("jobs")
    page.locator(".all-charts > summary").click()
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("j")
    expect(page.locator('tr[data-queue="jobs"] a[data-part=link]')).to_be_focused()


#: Waits of half a minute are over at once, repeated ones too; and changes that the page was told of are counted.
_SOON = """
for (const name of ["setTimeout", "setInterval"]) {
    const start = window[name];
    window[name] = (act, ms, ...more) => start(act, ms === 30000 ? 0 : ms, ...more);
}
window.changes = 0;
document.addEventListener("pqadmin:changed", () => window.changes++);
"""


def test_queues_that_changed_most_are_asked_for_after_a_change_only(page: Page, store: Store, jobs: Queue) -> None:
    jobs.push(b"x", 1)
    recorded(store)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.add_init_script(_SOON)
    open_live(page, "/charts/?span=1h")
    with page.expect_response("**/charts/?span=1h", timeout=20_000):
        jobs.push(b"x", 1)
    expect(page.locator("[data-total=ready]")).to_have_text("2")
    requests = sum("/charts/?" in url for url in asked) - 1  # the first is the page itself
    assert 1 <= requests <= page.evaluate("window.changes")


def test_charts_go_on_each_minute_without_a_change(page: Page, store: Store) -> None:
    page.route_web_socket(re.compile("/live/"), lambda _: None)  # the site sees the push late: that is a change
    store.create_queue("jobs").push(b"x", 1)
    recorded(store)
    page.clock.install()
    page.goto("/charts/?span=1h")
    expect(page.locator("[data-chart=depth] canvas")).to_be_visible()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/charts/data/" in request.url else None)
    for _ in range(5):
        with page.expect_response("**/charts/data/?span=1h"):
            page.clock.run_for(60_000)
    assert len(asked) <= 6  # the clock goes on between the minutes


def test_charts_of_all_queues_follow_live_as_the_reader_left_them(page: Page, store: Store) -> None:
    for name, depth in (("jobs", 20), ("mail", 5)):
        store.create_queue(name).push_many([(b"x", 1)] * depth)
    recorded(store)
    open_live(page, "/charts/?span=1h")
    assert legend(page, "depth", "ready") == "25"
    page.locator("[data-chart=depth] .u-series").filter(has_text="delayed").locator("th").click()
    off = page.locator("[data-chart=depth] .u-series.u-off")
    expect(off).to_contain_text("delayed")
    page.locator("[data-chart=depth]").focus()
    page.keyboard.press("End")
    store.queue("jobs").pop_many(4)
    expect(page.locator("[data-total=ready]")).to_have_text("21")
    expect(page.locator("[data-chart=depth] .u-series").nth(1)).to_contain_text("21")
    expect(off).to_contain_text("delayed")
    expect(page.locator("[data-chart=depth]")).to_be_focused()
    page.get_by_role("link", name="6 h").click()
    expect(page.locator("[data-range][aria-current]")).to_have_text("6 h")
    expect(off).to_contain_text("delayed")
    page.keyboard.press("Escape")

    over = page.locator("[data-chart=depth] .u-over")
    box = over.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 30, steps=3)
    store.queue("jobs").pop_many(4)
    expect(page.locator("[data-total=ready]")).to_have_text("17")
    page.mouse.move(box["x"] + box["width"] * 0.75, box["y"] + 30, steps=3)
    page.mouse.up()
    page.wait_for_url(re.compile(r"from=.+Z&to=.+Z"))


def test_charts_are_new_after_a_reconnect_whose_frames_are_numbered_alike(page: Page, store: Store) -> None:
    store.create_queue("jobs").push_many([(b"x", 1)] * 20)
    recorded(store)
    frames: list[Message] = []

    def first(seen: Message) -> Message | None:
        if seen["t"] == "hello":
            frames.clear()
        if seen["t"] == "frame":
            frames.append(seen)
        return None if len(frames) > 1 else seen

    ends = tap(page, first)
    open_live(page, "/charts/?span=1h")
    until(page, lambda: frames)
    store.queue("jobs").pop_many(4)
    until(page, lambda: len(frames) > 1)
    ends[0][0].close(code=1012)
    expect(page.locator("[data-chart=depth] .u-series").nth(1)).to_contain_text("16", timeout=20_000)


def test_charts_of_a_tab_that_was_hidden_are_new_when_it_is_shown(page: Page, store: Store) -> None:
    store.create_queue("jobs").push_many([(b"x", 1)] * 20)
    recorded(store)
    open_live(page, "/charts/?span=1h")
    hide(page, True)
    store.queue("jobs").pop_many(4)
    hide(page, False)
    expect(page.locator("[data-chart=depth] .u-series").nth(1)).to_contain_text("16")


#: The colors of a canvas, but for its background.
_COLORS = """(canvas) => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const found = new Map();
    for (let n = 0; n < data.length; n += 4) {
        if (data[n + 3] < 255) continue;
        const color = `${data[n]} ${data[n + 1]} ${data[n + 2]}`;
        found.set(color, (found.get(color) ?? 0) + 1);
    }
    return [...found].filter(([, n]) => n > 50).length;
}"""


def test_forced_colors_leave_the_bars_and_grades_of_a_mix(new_page: NewPage, store: Store, jobs: Queue) -> None:
    jobs.push_many([*[(b"x", 1)] * 80, *[(b"x", 3)] * 15, (b"x", 5)])
    recorded(store)
    page = new_page(forced_colors="active")
    page.goto(HERE)
    grades = page.locator("[data-chart=mix] canvas")
    expect(grades).to_be_visible()
    until(page, lambda: grades.evaluate(_COLORS) >= 3, "all grades have one color")
    page.goto("/queues/jobs/")
    bar = page.locator(".mix.tall i").nth(2)
    assert bar.evaluate("bar => getComputedStyle(bar).backgroundImage") != "none"


def test_a_range_that_is_chosen_again_before_it_came_is_shown(page: Page, store: Store, jobs: Queue) -> None:
    jobs.push(b"x", priority=1)
    recorded(store)
    open_live(page, HERE)
    waiting: list[Route] = []
    page.route(re.compile(r"/history/\?"), lambda route: waiting.append(route))
    for n, label in enumerate(("6 h", "24 h", "6 h"), 1):
        page.locator("[data-range]").get_by_text(label, exact=True).click()
        until(page, lambda n=n: len(waiting) == n, "a range is not asked for")
    waiting[0].continue_()
    expect(page.locator("[data-range][aria-current]")).to_have_text("6 h")
    with page.expect_event("requestfinished"):
        waiting[2].continue_()
    page.wait_for_timeout(500)
    expect(page.locator(".chart canvas").first).to_be_visible(timeout=2_000)
