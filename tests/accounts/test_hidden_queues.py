"""Hidden queues: on no page, and in no list, suggestion, count, file or error of people without the right."""

import html
import re
from collections.abc import Callable
from urllib.parse import quote

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import translation

from pqadmin.accounts.rights import Role
from pqadmin.store import get_store
from queues.items.scan import Query
from tests.accounts.matrix import PAGES
from tests.accounts.test_matrix import steady

pytestmark = pytest.mark.django_db

#: In the names and values of what is hidden; in nothing else.
SECRET = "zebra"
HIDDEN, OWN, SEEN = f"{SECRET}:in", "jobs", "jobs:seen"


@pytest.fixture
def world(jobs) -> dict[str, str]:
    """Queues that are one's own, seen and hidden, with acts between them; returns what addresses need."""
    store = get_store()
    own, hidden = store.queue(OWN), store.create_queue(HIDDEN)
    store.create_queue(SEEN)
    store.create_queue(f"jobs-{SECRET}")  # it looks like a queue that is seen
    acts = store.actions("root")
    item = own.push(b"mine", priority=1)
    gone, came = own.push(b"left", priority=2), hidden.push(b"came", priority=3)
    for n in range(3):
        hidden.push(f"{SECRET} {n}".encode(), priority=n)
    acts.move_items(OWN, [gone.id], HIDDEN)
    acts.move_items(HIDDEN, [came.id], OWN)
    popped = acts.pop(HIDDEN)
    with hidden.opened.consumption.waits():
        hidden.opened.consumption.leased({}, f"{SECRET} press")
        store.context.presence.beat()
    acts.pause(HIDDEN, reason="no names here")
    acts.rename_queue(SEEN, f"{SECRET}:seen")
    acts.rename_queue(f"{SECRET}:seen", SEEN)
    job = acts.begin_bulk("delete", HIDDEN, query=Query(state="ready"), reason="")
    to = acts.begin_bulk("move", OWN, query=Query(state="ready"), reason="", to=HIDDEN)
    return {
        "item": item.id,
        "gone": gone.id,
        "came": came.id,
        "trash": popped.trash_id,
        "moved": next(e.id for e in store.trash.entries(limit=50).entries if e.to == HIDDEN),
        "job": job.id,
        "job_to": to.id,
    }


@pytest.fixture
def ann(granted, world) -> Client:
    """A person that acts on `jobs` and sees what is called like it, but nothing else."""
    client = Client()
    client.force_login(granted(Role.NONE, {OWN: Role.OPERATOR, f"{OWN}:*": Role.VIEWER}, "ann"))
    return client


def text_of(answer) -> str:
    return (b"".join(answer) if answer.streaming else answer.content).decode(errors="replace")


def test_no_page_says_anything_of_a_hidden_queue(ann, world) -> None:
    for name, row in PAGES.items():
        if name.startswith("accounts:"):
            continue
        places = [dict(row.arguments)]
        if "item_id" in row.arguments:
            places = [{**row.arguments, "item_id": world[which]} for which in ("item", "gone", "came")]
        elif "job_id" in row.arguments:
            places = [{**row.arguments, "job_id": world[which]} for which in ("job", "job_to")]
        elif "trash_id" in row.arguments:
            places = [{**row.arguments, "trash_id": world[which]} for which in ("trash", "moved")]
        for arguments in places:
            for query in ("", f"?act=move&id={world['item']}&state=ready&queue={HIDDEN}&format=ndjson&q=zeb"):
                path = reverse(name, kwargs=arguments) + query
                for answer in (ann.get(path), ann.get(path, headers={"HX-Request": "true"})):
                    shown = text_of(answer)
                    if query:  # a filter shows what was typed
                        shown = shown.replace(HIDDEN, "").replace(quote(HIDDEN, safe=""), "")
                    told = re.search(f".{{200}}{SECRET}.{{100}}", shown, re.DOTALL)
                    assert SECRET not in shown, (path, told)


def test_lists_and_counts_hold_what_is_seen(ann, world) -> None:
    page = text_of(ann.get("/"))
    assert set(re.findall(r'data-queue="([^"]+)"', page)) == {OWN, SEEN}
    assert re.search(r"<dd[^>]*>2<", page) or "2 queues" in page
    lines = text_of(ann.get("/audit/export/?format=ndjson"))
    # One left for where ann sees nothing, one came from there, and a job is to move there.
    assert lines.count('"verb": "move"') == 3
    trash = text_of(ann.get("/trash/"))
    assert trash.count("<td")
    assert SECRET not in trash
    assert "Nothing is running" in text_of(ann.get("/jobs/"))


def form(client: Client, path: str) -> dict[str, str]:
    """Return the hidden fields of the last form on a page."""
    fields = re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', text_of(client.get(path)))
    return {key: value for key, value in fields if key != "csrfmiddlewaretoken"}


@pytest.mark.parametrize("to", [HIDDEN, f"{SECRET}:nowhere"])
def test_a_move_to_a_hidden_queue_fails_as_one_to_nowhere(to: str, ann, world) -> None:
    before = get_store().queue(OWN).depth()
    path = f"/queues/{OWN}/act/?act=move&id={world['item']}"
    answer = ann.post(f"/queues/{OWN}/act/", {**form(ann, path), "to": to})
    said = text_of(answer)
    assert answer.status_code == 422
    assert "No queue has this name" in said
    assert f"jobs-{SECRET}" not in said
    bulk = f"/queues/{OWN}/bulk/?act=move&state=ready"
    answer = ann.post(bulk, {**form(ann, bulk), "to": to, "count": "2", "ended": "on"})
    assert answer.status_code == 422
    assert "Did you mean" not in text_of(answer)
    assert get_store().queue(OWN).depth() == before


def test_a_move_to_a_queue_that_one_only_sees_is_refused_and_says_why(ann, world) -> None:
    path = f"/queues/{OWN}/act/?act=move&id={world['item']}"
    offered = text_of(ann.get(path))
    assert f'value="{SEEN}"' not in offered
    answer = ann.post(f"/queues/{OWN}/act/", {**form(ann, path), "to": SEEN})
    assert answer.status_code == 422
    assert "You may look at jobs:seen, but not act on it" in text_of(answer)
    assert get_store().queue(SEEN).depth() == 0


@pytest.mark.parametrize("name", [HIDDEN, f"{SECRET}:nowhere", SEEN])
def test_no_queue_is_made_or_named_what_one_may_not_act_on(name: str, ann, world) -> None:
    page = text_of(ann.get("/new/"))
    mine = re.search(r'name="form_number" value="([^"]+)"', page).group(1)
    made = ann.post("/new/", {"form_number": mine, "name": name, "kind": "fifo"})
    assert made.status_code == 422
    assert "You may act on queues with these names: jobs." in text_of(made)
    path = f"/queues/{OWN}/rename/"
    renamed = ann.post(path, {**form(ann, path), "name": name})
    assert renamed.status_code == 422
    assert get_store().queue(OWN).name == OWN


@pytest.mark.parametrize(
    ("path", "purpose"),
    [
        ("/trash/{trash}/restore/", "restore:{trash}"),
        ("/jobs/{job}/cancel/", "cancel-job:{job}"),
        ("/jobs/{job_to}/undo/", "undo-job:{job_to}"),
    ],
)
def test_acts_on_what_is_hidden_find_nothing(path: str, purpose: str, ann, world, rf) -> None:
    """Even with a form of one's own that was good while one had the right."""
    before = get_store().queue(HIDDEN).totals(), get_store().actions("x").job(world["job"]).status
    answer = ann.post(path.format(**world), {"form_number": made(ann, rf, purpose.format(**world))}, follow=True)
    assert SECRET not in text_of(answer)
    assert "any more" in text_of(answer) or "No such job" in text_of(answer) or "No longer" in text_of(answer)
    assert (get_store().queue(HIDDEN).totals(), get_store().actions("x").job(world["job"]).status) == before


def test_undoing_a_move_needs_both_queues(ann, world, rf) -> None:
    answer = ann.post(f"/trash/{world['moved']}/restore/", {"form_number": made(ann, rf, f"restore:{world['moved']}")})
    assert answer.status_code == 403
    assert SECRET not in text_of(answer)
    assert get_store().queue(HIDDEN).find(world["gone"]) is not None
    assert f"/trash/{world['moved']}/restore/" not in text_of(ann.get("/trash/"))


def test_a_job_that_reaches_a_hidden_queue_is_told_without_it_where_it_could_conflict(ann, world) -> None:
    page = text_of(ann.get(f"/queues/{OWN}/bulk/?act=delete&state=ready"))
    assert "A job that reaches a queue that you may not see." in page
    assert world["job_to"] not in page
    assert "jobs-here" not in text_of(ann.get(f"/queues/{OWN}/rename/"))


def made(client: Client, rf, purpose: str) -> str:
    """Return a number that the site would have put into a form of this person."""
    from django.contrib.auth.models import User

    from pqadmin.pages import form_idempotency

    request = rf.get("/")
    request.user = User.objects.get(pk=client.session["_auth_user_id"])
    return form_idempotency.number(request, purpose)


@pytest.mark.parametrize("name", ["overview", "queue", "item", "audit", "trash", "jobs", "history", "bulk", "push"])
def test_a_page_asks_the_tables_as_often_for_many_grants_as_for_none(
    name: str, granted, world, django_assert_max_num_queries
) -> None:
    """Session, user, groups, grants, favorites: once a request, however many queues and rows the page has."""
    client = Client()
    client.force_login(
        granted(
            Role.NONE,
            {f"{OWN[: n % 4]}*": Role.OPERATOR for n in range(50)} | {f"x{n}*": Role.VIEWER for n in range(50)},
        )
    )
    arguments = {"name": OWN, "item_id": world["item"]}
    wanted = PAGES[f"dashboard:{name}"].arguments
    path = reverse(f"dashboard:{name}", kwargs={key: arguments[key] for key in wanted})
    client.get(path)
    with django_assert_max_num_queries(4 + (name in ("overview", "queue")) + (name == "push") * 3):
        assert client.get(path).status_code == 200


@pytest.fixture
def bob(granted, jobs) -> Client:
    """A person that acts on `jobs` and on what is called like it."""
    client = Client()
    client.force_login(granted(Role.NONE, {f"{OWN}*": Role.OPERATOR}, "bob"))
    return client


def test_an_undo_asks_for_the_names_that_queues_have_now(bob, rf) -> None:
    """A queue that was renamed out of one's reach, and foreign keys that were attached anew, are not changed."""
    store = get_store()
    acts, prefix = store.actions("root"), b"\x15\x2arecipe"
    store.create_queue(f"{OWN}:b")
    store.attach(f"{OWN}:old", prefix=prefix)
    moved = [store.queue(OWN).push(b"1", priority=n).id for n in range(2)]
    acts.move_items(OWN, moved[:1], f"{OWN}:b")
    acts.move_items(OWN, moved[1:], f"{OWN}:old")
    store.queue(f"{OWN}:old").push(b"2", priority=0)
    acts.pop(f"{OWN}:old")
    entries = store.trash.entries().entries
    assert text_of(bob.get("/trash/")).count("/restore/") == len(entries) == 3
    acts.rename_queue(f"{OWN}:b", f"{SECRET}:b")
    acts.detach(f"{OWN}:old")
    acts.attach(f"{SECRET}:old", prefix=prefix)
    assert "/restore/" not in text_of(bob.get("/trash/"))
    assert "/restore/" not in text_of(bob.get(f"/queues/{OWN}/?state=trash"))
    before = [store.queue(name).depth() for name in (OWN, f"{SECRET}:b", f"{SECRET}:old")]
    for entry in entries:
        answer = bob.post(f"/trash/{entry.id}/restore/", {"form_number": made(bob, rf, f"restore:{entry.id}")})
        assert answer.status_code == 403
        assert SECRET not in text_of(answer)
    assert [store.queue(name).depth() for name in (OWN, f"{SECRET}:b", f"{SECRET}:old")] == before


@pytest.mark.parametrize("path", ["/trash/", f"/queues/{OWN}/?state=trash"])
def test_the_trash_reads_the_names_as_often_for_many_entries_as_for_one(path: str, bob, monkeypatch) -> None:
    store, asked = get_store(), list[str]()
    names = type(store).directory

    def counted(*arguments, **named):
        asked.append(path)
        return names(*arguments, **named)

    monkeypatch.setattr(type(store), "directory", counted)
    counts = []
    for _ in range(4):
        store.queue(OWN).push(b"1", priority=1)
        store.actions("root").pop(OWN)
        asked.clear()
        assert "/restore/" in text_of(bob.get(path))
        counts.append(len(asked))
    assert len(set(counts)) == 1


def test_a_refusal_for_want_of_a_right_lets_the_form_be_sent_again(bob, rf) -> None:
    store = get_store()
    store.create_queue(f"{OWN}:b")
    moved = store.queue(OWN).push(b"1", priority=1)
    store.actions("root").move_items(OWN, [moved.id], f"{OWN}:b")
    (entry,) = store.trash.entries().entries
    store.rename_queue(f"{OWN}:b", f"{SECRET}:b")
    form = {"form_number": made(bob, rf, f"restore:{entry.id}")}
    path = f"/trash/{entry.id}/restore/"
    assert [bob.post(path, form).status_code for _ in range(2)] == [403, 403]
    store.rename_queue(f"{SECRET}:b", f"{OWN}:b")
    assert bob.post(path, form).status_code == 303
    assert store.queue(OWN).find(moved.id) is not None


def test_hidden_jobs_do_not_shorten_a_page(bob, monkeypatch) -> None:
    from pqadmin.dashboard.jobs import views as view

    monkeypatch.setattr(view, "PAGE", 2)
    store = get_store()
    acts = store.actions("root")
    store.create_queue(HIDDEN)

    def ended(name: str) -> str:
        job = acts.begin_bulk("delete", name, query=Query(state="ready"), reason="")
        acts.cancel_bulk(job.id)
        return job.id

    mine = [ended(OWN) for _ in range(3)]
    for _ in range(5):
        ended(HIDDEN)
    first = text_of(bob.get("/jobs/"))
    assert [f"/jobs/{job_id}/" in first for job_id in mine] == [False, True, True]
    following = re.search(r'href="(\?after=[^"]+)"', first).group(1)
    second = text_of(bob.get("/jobs/" + following))
    assert [f"/jobs/{job_id}/" in second for job_id in mine] == [True, False, False]
    assert 'href="?after=' not in second


@pytest.fixture(params=["/audit/", "/audit/?verb=pop_min", "/trash/", "/trash/?act=pop", "/jobs/"])
def listed(request, monkeypatch) -> tuple[str, Callable[[str], str]]:
    """An address of a list of two records a page, and what puts one for a queue into it; returns the record's id."""
    from pqadmin.dashboard.audit import views as audit
    from pqadmin.dashboard.jobs import views as jobs
    from pqadmin.dashboard.trash import views as trash

    for view in (audit, jobs, trash):
        monkeypatch.setattr(view, "PAGE", 2)
    store = get_store()
    store.create_queue(HIDDEN)
    acts = store.actions("root")

    def put(name: str) -> str:
        if request.param == "/jobs/":
            job = acts.begin_bulk("delete", name, query=Query(state="ready"), reason="")
            acts.cancel_bulk(job.id)
            store.context.id_generator.new_id()  # a cursor names the id behind one that is seen
            return job.id
        store.queue(name).push(b"x", priority=1)
        trash_id = acts.pop(name).trash_id
        return store.audit.entries(limit=1).entries[0].id if "audit" in request.param else trash_id

    return request.param, put


def older(text: str) -> str:
    """Return where the link to older ones leads; empty when there is none."""
    found = re.search(r'rel="next"\s+href="([^"]+)"', text)
    return "" if found is None else html.unescape(found.group(1))


def count(text: str) -> int:
    """Return how many records a page lists."""
    return len(re.findall(r"</td>\n+  </tr>", text)) or text.count("data-job=")


def test_older_ones_are_offered_only_where_some_that_are_seen_follow(bob, listed) -> None:
    path, put = listed
    for _ in range(5):
        put(HIDDEN)
    for _ in range(2):
        put(OWN)
    assert older(text_of(bob.get(path))) == "", "only hidden ones follow a full page"
    put(OWN)
    hidden = [put(HIDDEN) for _ in range(5)]
    for _ in range(2):
        put(OWN)
    seen = 0
    for _ in range(2):
        page = text_of(bob.get(path))
        path = path.partition("?")[0] + older(page)
        assert "Look through" not in page
        assert [each for each in hidden if each in page] == []
        seen += count(page)
    page = text_of(bob.get(path))
    assert older(page) == ""
    assert seen + count(page) == 5


def test_what_follows_is_looked_for_in_bounded_reads_and_then_offered_as_a_look(bob, listed, monkeypatch) -> None:
    from pqadmin.pages import filtered_lists
    from queues.model import paging

    path, put = listed
    monkeypatch.setattr(paging, "MOST", 2)
    monkeypatch.setattr(paging, "STEP", 2)
    monkeypatch.setattr(filtered_lists, "SECONDS", 0.0)
    put(OWN)
    for _ in range(12):
        put(HIDDEN)
    for _ in range(2):
        put(OWN)
    looks = 0
    page = text_of(bob.get(path))
    assert "Look through older ones" in page
    while following := older(page):
        page = text_of(bob.get(path.partition("?")[0] + following))
        looks += 1
        if following and count(page) == 0:
            assert "older ones may" in page
    assert 1 < looks < 12
    assert count(page) == 1
    monkeypatch.setattr(filtered_lists, "SECONDS", 60.0)
    page = text_of(bob.get(path.partition("?")[0] + older(text_of(bob.get(path)))))
    assert count(page) == 1, "an answer that would be empty looks on for a while"


def test_how_many_hidden_records_were_looked_at_is_not_told(bob, visitor, monkeypatch) -> None:
    from pqadmin.pages import filtered_lists
    from queues.model import paging

    monkeypatch.setattr(paging, "MOST", 2)
    monkeypatch.setattr(paging, "STEP", 1)
    monkeypatch.setattr(filtered_lists, "SECONDS", 0.0)
    acts = get_store().actions("root")
    hidden = get_store().create_queue(HIDDEN)
    for n in range(55):
        hidden.push(b"x", priority=n)
        acts.pop(HIDDEN)
    everything = visitor(Role.ADMIN)
    for path in ("/audit/?verb=push", "/trash/?act=push"):
        assert "ooked through" in text_of(everything.get(path)), path
        theirs = text_of(bob.get(path))
        assert "ooked through" not in theirs
        assert "Look through older ones" in theirs


def test_hidden_acts_on_an_item_do_not_hide_visible_ones(granted, jobs) -> None:
    from pqadmin.accounts.scope import scope_of
    from pqadmin.dashboard.items import history as item_history

    store = get_store()
    store.create_queue(HIDDEN)
    acts, item = store.actions("root"), store.queue(OWN).push(b"x", priority=1)
    acts.move_items(OWN, [item.id], HIDDEN)
    for n in range(item_history.SHOWN + 2):
        acts.reprioritize(HIDDEN, [item.id], priority=n + 5)
    may = scope_of(granted(Role.NONE, {OWN: Role.OPERATOR}))
    history = item_history.history_of(item.id, may)
    assert len(history["lines"]) == 1
    assert not history["more"]
    assert item_history.latest(item.id, may).verb == "move"


@pytest.mark.parametrize("path", ["/trash/{0}/restore/", "/jobs/{0}/cancel/"])
def test_what_is_hidden_is_refused_in_the_words_for_what_is_not_there(path: str, ann, world, rf) -> None:
    """In every language."""
    what, key = ("restore", "trash") if "trash" in path else ("cancel-job", "job")
    said = []
    for number in (world[key], "0" * 40):
        form = {"form_number": made(ann, rf, f"{what}:{number}")}
        with translation.override("zh-hans"):
            answer = ann.post(path.format(number), form, follow=True, headers={"Accept-Language": "zh-hans"})
        said.append(re.sub(r"[0-9a-f]{40}", "", steady(answer)).partition("<table")[0])
    assert said[0] == said[1]
