"""Two sites on one FoundationDB cluster: what is done in one is seen in the other, and both survive the cluster."""

import re
import threading
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from playwright.sync_api import Browser, Page, expect

from queues import Store, open_store
from tests import cluster
from tests.browser.conftest import PATIENCE, Site, Strict, open_live, ready_of, sign_in, wait_live, wait_value
from tests.soak.server import Server, program

pytestmark = pytest.mark.skipif(
    not cluster.find().url or not program("fdbserver") or not program("fdbcli"),
    reason=f"no fdbserver of one's own: {cluster.find().why_not or 'fdbserver and fdbcli are not on the PATH'}",
)

#: Keeps, in window.sums, every sum of both depths that the page has shown, and counts the looks.
NOTE_SUMS = """() => {
    window.sums = new Set();
    window.looks = 0;
    const ready = name => document.querySelector(`tr[data-queue="${name}"] [data-field=ready]`);
    const note = () => {
        window.looks += 1;
        window.sums.add(Number(ready("left").dataset.value) + Number(ready("right").dataset.value));
    };
    const observer = new MutationObserver(() => requestAnimationFrame(note));
    for (const name of ["left", "right"]) observer.observe(ready(name), {attributes: true});
}"""
#: Ends when the page has shown so many changes.
LOOKED = """times => new Promise(done => {
    const look = () => window.looks >= times ? done() : requestAnimationFrame(look);
    look();
})"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A cluster of this module's own, which it may kill."""
    with Server(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="module")
def sites(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Site]]:
    """Two sites with their own users on the one cluster."""
    with ExitStack() as stack:
        made = [Site(tmp_path_factory.mktemp(f"site-{n}"), server.url) for n in range(2)]
        for site in made:
            site.start()
            stack.callback(site.stop)
        yield made


@pytest.fixture
def store(server: Server) -> Iterator[Store]:
    """The cluster's store in this process."""
    with open_store(server.url) as opened:
        yield opened
        for queue in opened.queues(limit=1_000):
            opened.delete_queue(queue.name)


@pytest.fixture
def pages(sites: list[Site], chromium: Browser, strict: Strict) -> Iterator[list[Page]]:
    """A signed-in page of each site; free of faults when the test ends."""
    contexts = [chromium.new_context(base_url=site.address, reduced_motion="reduce") for site in sites]
    made = []
    for context, site in zip(contexts, sites, strict=True):
        context.set_default_timeout(PATIENCE * 1000)
        page = context.new_page()
        strict.watch(page)
        sign_in(page, "admin", site.password)
        made.append(page)
    yield made
    for context in contexts:
        context.close()
    strict.check()


def test_what_one_site_does_the_other_shows(pages: list[Page], store: Store) -> None:
    store.create_queue("jobs")
    here, there = pages
    there.goto("/")
    wait_live(there)
    wait_value(there, ready_of("jobs"), 0)

    here.goto("/queues/jobs/push/")
    here.fill("[name=value]", "from the first site")
    here.fill("[name=priority]", "5")
    here.click("form:has(#push-value) button.primary")

    wait_value(there, ready_of("jobs"), 1)
    minimum = there.locator('tr[data-queue="jobs"] [data-field=min] [data-part=value]')
    expect(minimum).to_have_text("from the first site")


def test_sums_hold_on_both_sites_while_items_move(pages: list[Page], store: Store) -> None:
    left, right = store.create_queue("left"), store.create_queue("right")
    left.push_many([(b"%d" % n, n) for n in range(40)])
    for page in pages:
        open_live(page, "/")
        wait_value(page, ready_of("left"), 40)
        page.evaluate(NOTE_SUMS)
    ended = threading.Event()

    def move() -> None:
        source, target = left, right
        while not ended.is_set():

            def one(tr, source=source, target=target) -> bool:
                item = source.pop_min(tr=tr)
                if item is not None:
                    target.push(item.value, priority=item.priority, tr=tr)
                return item is not None

            if not store.transact(one):
                source, target = target, source

    mover = threading.Thread(target=move)
    mover.start()
    try:
        for page in pages:
            page.evaluate(LOOKED, 40)
    finally:
        ended.set()
        mover.join()
    for page in pages:
        assert page.evaluate("[...window.sums]") == [40]


def test_a_killed_cluster_is_said_and_its_return_is_seen(
    pages: list[Page], server: Server, store: Store, strict: Strict
) -> None:
    strict.allowed += [r"503", r"Failed to load resource"]
    store.create_queue("jobs").push(b"x", priority=1)
    fresh = [page.locator("[data-fresh]").first for page in pages]
    for page in pages:
        open_live(page, "/")
        wait_value(page, ready_of("jobs"), 1)

    server.kill()
    for one in fresh:
        expect(one).not_to_have_attribute("data-state", "live")
    answer = pages[0].goto("/queues/jobs/")
    assert answer.status == 503
    assert answer.headers["retry-after"]
    expect(pages[0].locator("main")).to_contain_text(re.compile("does not answer|cannot be reached"))

    server.start()
    expect(fresh[1]).to_have_attribute("data-state", "live")
    store.queue("jobs").push(b"y", priority=2)
    wait_value(pages[1], ready_of("jobs"), 2)
    pages[0].goto("/")
    wait_live(pages[0])
    wait_value(pages[0], ready_of("jobs"), 2)
