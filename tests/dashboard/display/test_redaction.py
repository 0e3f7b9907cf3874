"""Redaction: nothing under a hidden key is seen, wherever values are shown and wherever they are cut."""

import gzip
import json
import random
import re
import time
import zlib
from datetime import timedelta
from typing import Any

import pytest
from fdb import tuple as fdb_tuple
from hypothesis import given, settings
from hypothesis import strategies as st

from pqadmin.display.redaction import MARK, Redaction, covered, rules_of
from pqadmin.display.values import hidden, masked, one_line, plain, show
from pqadmin.display.values.compressed import MAX_LEVELS
from queues import Store
from tests.dashboard.conftest import Desk
from tests.dashboard.display.test_values import pack

SECRET = 'h\u00fcnter 2, "x"} \U0001f511'
RULES = Redaction(["password", "*_token", "card?"])


@pytest.mark.parametrize(
    ("rules", "key", "hides"),
    [
        (["password"], "password", True),
        (["password"], "PassWord", True),
        (["password"], "password2", False),
        (["api_key"], "apiKey", True),
        (["api_key"], "API-Key", True),
        (["apikey"], "api key", True),
        (["*token"], "refresh_token", True),
        (["*token"], "token_count", False),
        (["*token*"], "token_count", True),
        (["card?"], "cards", True),
        (["card?"], "card", False),
        (["[a-z]*"], "abc", False),
        (["[a-z]*"], "[az]x", True),
        (["a*b*c"], "a--b--c", True),
        (["a*b*c"], "acb", False),
        (["*"], "", True),
        (["straße"], "STRASSE", True),
        (["caf\u00e9"], "cafe\u0301", True),
        (["token", "!token"], "token", False),
        (["*token", "!page_token"], "pageToken", False),
        (["*token", "!page_token"], "my_token", True),
        ([], "password", False),
        (["", " ", "-"], "", False),
    ],
)
def test_rules_are_names_and_globs(rules: list[str], key: str, hides: bool) -> None:
    assert Redaction(rules).hides(key) is hides


def test_no_rule_takes_long_for_any_key() -> None:
    rules = Redaction(["*a" * 31 + "*b", "?*" * 32])
    began = time.thread_time()
    assert not Redaction(["*a" * 31 + "*b"]).hides("a" * 900)
    rules.hides("a" * 100_000)
    assert time.thread_time() - began < 1


def test_a_queue_shows_what_the_site_hides_if_it_says_so(settings: Any) -> None:
    from pqadmin.display.redaction import rules_of

    settings.PQADMIN_REDACT = ("password", "token")
    assert rules_of(("iban",)).hides("IBAN")
    assert rules_of(("iban",)).hides("token")
    assert not rules_of(("!token",)).hides("token")
    settings.PQADMIN_REDACT = ()
    assert not rules_of(())


_words = st.text(max_size=6) | st.sampled_from(['"', "\\", '":"', "{", "]", ",", "\n", "\u202e"])
_plain = st.none() | st.booleans() | st.integers(0, 99) | _words
_names = st.text(max_size=5) | st.sampled_from(["pass", 'a"b', "\\", "secretary", "token_x", "passwords"])
_guarded = st.sampled_from(["password", "PassWord", "auth-token", "my_token", "cards"])


def _hiding(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Objects with names that are hidden; under those are secrets, in any form."""
    secrets = (
        st.just(SECRET) | st.lists(st.just(SECRET), max_size=2) | st.dictionaries(_names, st.just(SECRET), max_size=2)
    )
    return st.builds(
        lambda shown, key, secret, more: {**shown, key: secret, **more},
        st.dictionaries(_names, inner, max_size=2),
        _guarded,
        secrets,
        st.dictionaries(_names, inner, max_size=2),
    )


#: What services wrap into each other: JSON inside of a JSON string, with secrets in it.
_wrapped = _hiding(_plain).map(json.dumps) | _hiding(_plain).map(lambda tree: json.dumps([json.dumps(tree)]))
_trees = st.recursive(
    _plain | _wrapped, lambda inner: st.lists(inner, max_size=3) | _hiding(inner), max_leaves=8
).filter(lambda tree: isinstance(tree, dict | list))
_FRAGMENTS = ["hünter", "nter 2", "h\\u00fc", "🔑", "ud83d", "hü"]


def leaks(text: str) -> bool:
    """Say whether any part of the secret that says something can be read, its bytes written in hex included."""
    return any(fragment in text for fragment in _FRAGMENTS) or SECRET.encode()[:4].hex(" ") in text


@given(_trees, st.booleans(), st.sampled_from([None, 2]), st.data())
@settings(max_examples=70, deadline=None)
def test_no_cut_of_json_shows_a_secret(tree: Any, ascii_only: bool, indent: int | None, data: st.DataObject) -> None:
    stored = json.dumps(tree, ensure_ascii=ascii_only, indent=indent).encode()
    cut = data.draw(st.integers(0, len(stored)))
    for value, more in ((stored, False), (stored[:cut], True)):
        text = covered(value, RULES.spans(value), b"#").decode("utf-8", "replace")
        assert not leaks(text)
        assert not leaks(one_line(value, RULES, width=10_000, more=more))
        for view in ("json", "text", "hex"):
            assert not leaks(show(value, rules=RULES, wanted=view, everything=True).html)
        assert not leaks(plain(value, RULES).decode("utf-8", "replace"))
        assert not leaks(masked(value, RULES).decode("utf-8", "replace"))
    # What remains is JSON with marks in it, and everything else is as it was.
    assert _with_marks(tree) == json.loads(masked(stored, RULES))


def _with_marks(tree: Any) -> Any:
    if isinstance(tree, list):
        return [_with_marks(element) for element in tree]
    if isinstance(tree, dict):
        return {key: MARK if RULES.hides(key) else _with_marks(value) for key, value in tree.items()}
    return MARK if isinstance(tree, str) and RULES.covers(tree) else tree


@given(_trees, st.data())
@settings(max_examples=40, deadline=None)
def test_no_cut_of_msgpack_shows_a_secret(tree: Any, data: st.DataObject) -> None:
    stored = pack(tree)
    cut = data.draw(st.integers(1, len(stored)))
    for value, more in ((stored, False), (stored[:cut], True)):
        assert not leaks(one_line(value, RULES, width=10_000, more=more))
    for view in ("msgpack", "text", "hex"):
        assert not leaks(show(stored, rules=RULES, wanted=view, everything=True).html)
    assert not leaks(plain(stored, RULES).decode("utf-8", "replace"))


@given(_trees, st.data())
@settings(max_examples=30, deadline=None)
def test_no_cut_of_what_is_packed_shows_a_secret(tree: Any, data: st.DataObject) -> None:
    stored = gzip.compress(json.dumps({"password": SECRET, "rest": tree}, ensure_ascii=False).encode())
    assert hidden(stored, RULES) == ((0, len(stored)),)
    cut = data.draw(st.integers(1, len(stored)))
    for value, more in ((stored, False), (stored[:cut], True)):
        assert not leaks(one_line(value, RULES, width=10_000, more=more))
    shown = show(stored, rules=RULES, wanted="packed", everything=True)
    assert "packed" not in shown.fits
    assert not leaks(shown.html)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (b'{"p\\u0061ssword": "hunter2", "a": 1}', '{"p\\u0061ssword": "[redacted]", "a": 1}'),
        (b'{"password" : null}', '{"password" : "[redacted]"}'),
        (b'{"password": -1.5e3, "b": [1]}', '{"password": "[redacted]", "b": [1]}'),
        (b'{"a": {"password": {"deep": ["]", "}"]}}, "b": 2}', '{"a": {"password": "[redacted]"}, "b": 2}'),
        (
            b'{"password": "a\\"b", "c": 3}\n{"password": 4}',
            '{"password": "[redacted]", "c": 3}\n{"password": "[redacted]"}',
        ),
        (b'{"note": "password: hunter2"}', '{"note": "password: hunter2"}'),
        (b'["password", "hunter2"]', '["password", "hunter2"]'),
        (b'{"body": "{\\"password\\": 1}", "n": 1}', '{"body": "[redacted]", "n": 1}'),
        (b'{"body": "{\\"user\\": 1}", "n": 1}', '{"body": "{\\"user\\": 1}", "n": 1}'),
        (b'\x02event\x00\x02{"password": 7, "a": 1}\x00', "('event', '{\"password\": [redacted], \"a\": 1}')"),
    ],
)
def test_what_is_hidden_and_what_is_not(value: bytes, text: str) -> None:
    assert masked(value, RULES).decode() == text


def test_a_value_without_hidden_keys_is_the_very_value() -> None:
    for value in (b'{"user": 1}', b"", b"\x00\xff", gzip.compress(b'{"user": 1}')):
        assert masked(value, RULES) is value
        assert hidden(value, RULES) == ()


def _payloads(seed: int) -> dict[str, bytes]:
    """Return a secret under a hidden key, written in all the ways in which services wrap values."""
    rng = random.Random(seed)
    secret = rng.choice(["SECRET", ["SECRET", {"z": "SECRET"}], {"q": "SECRET"}, "SECRET" * 30])
    tree: Any = {"first": rng.choice([1, "x" * 50, [None, 1.5]]), rng.choice(["password", "PassWord"]): secret, "n": 1}
    for _ in range(rng.randint(0, 3)):
        tree = rng.choice([[7, tree], {"m": tree, "o": 'q"\\'}])
    text, packed = json.dumps(tree), pack(tree)
    return {
        "json": text.encode(),
        "json in json": json.dumps({"body": json.dumps({"body": text})}).encode(),
        "json as a key in json": json.dumps({text: 1}).encode(),
        "utf-16": text.encode("utf-16"),
        "utf-16 in order": text.encode("utf-16-be"),
        "utf-32": text.encode("utf-32"),
        "msgpack": packed,
        "several": packed * 2,
        "with an end": packed + b"\0",
        "then broken": packed + b"\xc1",
        "framed": b"\0\0\1\7" + packed,
        "json in msgpack": pack({"payload": text}),
        "json in bytes": pack({"payload": text.encode()}),
        "utf-16 in bytes": pack({"payload": text.encode("utf-16-le")}),
        "msgpack in bytes": pack({"payload": packed}),
        "msgpack in bytes in bytes": pack([pack({"payload": pack([packed])})]),
        "zlib in bytes in bytes": pack([pack([zlib.compress(packed)])]),
        "gzip in bytes": pack({"payload": gzip.compress(text.encode())}),
        "msgpack in an extension": pack([1]) + b"\xc8" + len(packed).to_bytes(2, "big") + b"\x07" + packed,
        "extension of an array": b"\x91\xc8" + len(packed).to_bytes(2, "big") + b"\x07" + packed,
        "bytes that are a key": b"\x81" + pack(text.encode()) + b"\x01",
        "a map that is a key": b"\x81" + packed + b"\x01",
        "tuple of msgpack": fdb_tuple.pack((1, packed)),
        "packed": zlib.compress(packed),
        "packed bytes": gzip.compress(pack({"payload": text.encode()})),
    }


def _reads(text: str) -> bool:
    """Say whether the secret can be read, its bytes written in hex in either way included."""
    plain_text = re.sub("<[^>]*>", "", text).replace("\0", "").replace("·", "")
    return any(part in plain_text for part in ("SECR", b"SECR".hex(), b"SECR".hex(" "), "S.E.C.R"))


@pytest.mark.parametrize("seed", range(8))
def test_nothing_is_read_however_it_is_wrapped(seed: int) -> None:
    rng = random.Random(seed)
    for name, value in _payloads(seed).items():
        assert hidden(value, RULES), name
        assert not _reads(masked(value, RULES).decode("utf-8", "replace")), name
        for cut in {64, 256, len(value), *(rng.randint(1, len(value)) for _ in range(10))}:
            assert not _reads(one_line(value[:cut], RULES, width=10_000, more=cut < len(value))), (name, cut)
        for view in ("", "json", "msgpack", "text", "tuple", "hex", "packed"):
            assert not _reads(show(value, rules=RULES, wanted=view, everything=True).html), (name, view)


def _deep(value: Any, levels: int, *, payloads: bool) -> bytes:
    packed = pack(value)
    for _ in range(levels):
        packed = pack([packed]) if payloads else b"\x91" + packed
    return packed


@pytest.mark.parametrize(
    "value",
    [
        _deep({"password": "SECRET"}, 101, payloads=False),
        _deep({"password": "SECRET"}, 6, payloads=True),
        _deep(
            {"p": _deep({"p": _deep({"password": "SECRET"}, 90, payloads=False)}, 90, payloads=False)},
            90,
            payloads=False,
        ),
        gzip.compress(b"\xdd\x00\x01\x86\xa1" + b"\xc0" * 100_000 + pack({"password": "SECRET"})),
        pack([gzip.compress(bytes(2_000_000) + b'{"password": "SECRET"}')]),
    ],
    ids=["deep", "payloads in payloads", "deep in deep", "many", "large"],
)
def test_what_was_not_looked_into_counts_as_hidden(value: bytes) -> None:
    assert hidden(value, RULES)
    assert not hidden(value, Redaction())
    assert not _reads(masked(value, RULES).decode("utf-8", "replace"))
    shown = show(value, rules=RULES, wanted="hex", everything=True)
    assert shown.hides
    assert not _reads(shown.html)


def test_what_holds_nothing_hidden_is_the_very_value_in_any_wrapping() -> None:
    tree = {"user": "ada", "list": [1, {"passwords": 2}], "note": "password"}
    text, packed = json.dumps(tree).encode(), pack(tree)
    values = [packed, packed * 2, pack({"payload": text}), pack({"payload": packed}), text.decode().encode("utf-16")]
    values += [
        pack({"payload": gzip.compress(text), "hash": bytes(range(256))}),
        bytes(90_000),
        fdb_tuple.pack((packed,)),
    ]
    for value in values:
        assert masked(value, RULES) is value
        assert hidden(value, RULES) == ()


def test_packed_values_behind_each_other_are_shown_as_such() -> None:
    value = pack({"password": 1, "a": 2}) + pack(["b"])
    assert one_line(value, RULES) == '{"password": [redacted], "a": 2} ["b"]'
    assert "2 values behind each other" in show(value, rules=RULES).html


def test_a_key_too_long_to_compare_hides() -> None:
    rules = Redaction(["*password"])
    key = "x" * 1_500 + "_Password"
    for value in (json.dumps({key: "SECRET"}).encode(), pack({key: "SECRET"})):
        assert hidden(value, rules)
        assert not _reads(masked(value, rules).decode("utf-8", "replace"))
        assert not _reads(show(value, rules=rules, wanted="hex", everything=True).html)
    assert hidden(json.dumps({"é" * 1_500: "SECRET"}).encode(), rules)
    assert not rules.hides("x" * 1_500), "no part of the rule is in it"
    assert not Redaction().hides(key)


def _stored(store: Store) -> str:
    """Create a queue with rules and an item with secrets in it; return the item's id."""
    acts = store.actions("root")
    acts.create_queue("jobs")
    acts.configure("jobs", redact=("iban",))
    value = json.dumps({"user": "ada", "password": "hunter2", "deep": [{"IBAN": ["DE89-3704"]}]}).encode()
    return store.queue("jobs").push(value, priority=5).id


def _clean(html: str) -> bool:
    return not any(part in html for part in ("hunter2", "DE89", "3704", "68 75 6e", "hunte", "nter2"))


def _read(operator: Desk, address: str) -> tuple[int, str]:
    """Return an answer's status and text, a stream's too."""
    response: Any = operator.client.get(address)
    return response.status_code, response.getvalue().decode()


def _in_state(store: Store, operator: Desk, state: str) -> str:
    """Return the pages of an item in a state: its list and its own."""
    queue = store.create_queue(f"jobs-{state}")
    queue.configure(max_attempts=1)
    due = timedelta(hours=1) if state == "delayed" else None
    item = queue.push(b'{"user": "ada", "password": "hunter2"}', priority=1, delay=due)
    if state != "delayed":
        lease = queue.lease()
        if state == "dead":
            queue.release(lease, reason="broken")
    addresses = [f"/queues/jobs-{state}/?state={state}", f"/queues/jobs-{state}/items/{item.id}/"]
    pages = [operator.open(address) for address in addresses]
    assert all("ada" in page and "redacted" in page for page in pages), state
    return "".join(page.html for page in pages)


def test_no_page_shows_what_rules_hide(operator: Desk, store: Store) -> None:
    item_id = _stored(store)
    here = f"/queues/jobs/items/{item_id}/"
    addresses = ["/", "/queues/jobs/", here, f"{here}?as=text&all", f"{here}?as=hex&all", f"{here}download/?as=text"]
    addresses += [f"/queues/jobs/pop/?end={end}" for end in ("min", "max")]
    addresses += [f"/queues/jobs/act/?act={act}&id={item_id}" for act in ("delete", "move", "reprioritize")]
    addresses += ["/queues/jobs/?q=ada", "/queues/jobs/?q=hunter2", "/queues/jobs/bulk/?act=delete&state=ready&q=ada"]
    addresses += [f"{here}edit/", f"/queues/jobs/push/?like={item_id}", "/queues/jobs/export/?format=ndjson"]
    addresses += ["/queues/jobs/export/?format=csv"]
    for address in addresses:
        status, text = _read(operator, address)
        assert status == 200, address
        assert _clean(text.replace("q=hunter2", "").replace('value="hunter2"', "")), address
    for state in ("delayed", "leased", "dead"):
        assert _clean(_in_state(store, operator, state)), state
    page = operator.open(here)
    assert "Parts of this value are redacted" in page
    assert '"user"' in page.text
    assert page.text.count("redacted") >= 3
    popped = store.actions("root").pop("jobs")
    taken = operator.open(f"/queues/jobs/?taken={popped.trash_id}")
    assert "Taken from the queue" in taken
    assert _clean(taken.html)
    for address in ("/trash/", "/queues/jobs/?state=trash", "/audit/", "/audit/export/", here):
        assert _clean(_read(operator, address)[1]), address
    store.actions("root").delete_queue("jobs", confirm="jobs")
    assert _clean(operator.open("/trash/").html), "of a deleted queue too"


def test_raw_bytes_are_not_handed_out(operator: Desk, store: Store) -> None:
    here = f"/queues/jobs/items/{_stored(store)}/"
    refused = operator.open(f"{here}download/")
    assert refused.status == 403
    assert "Parts of this value are redacted" in refused
    assert _clean(refused.html)


def test_revealing_is_audited_and_shows_one_answer(operator: Desk, store: Store) -> None:
    item_id = _stored(store)
    here = f"/queues/jobs/items/{item_id}/"
    page = operator.open(here)
    revealed = operator.send(page, "/reveal/", reason="ticket 7", **{"as": "text"})
    assert revealed.status == 200
    assert "hunter2" in revealed
    assert "DE89-3704" in revealed
    assert "Revealed to you, on this page alone." in revealed
    entry = store.audit.entries(item=item_id).entries[0]
    assert (entry.actor, entry.verb, entry.reason, entry.item, entry.queue) == (
        "ada",
        "reveal",
        "ticket 7",
        item_id,
        "jobs",
    )
    assert entry.before is entry.after is None
    assert _clean(operator.open(here).html), "only that answer showed it"
    again = operator.send(page, "/reveal/", reason="ticket 7")
    assert "already sent" in again
    assert _clean(again.html)
    assert len([e for e in store.audit.entries(item=item_id).entries if e.verb == "reveal"]) == 1
    assert "revealed a value" in operator.open(here)


def test_revealed_bytes_can_be_downloaded(operator: Desk, store: Store) -> None:
    item_id = _stored(store)
    action, fields = operator.open(f"/queues/jobs/items/{item_id}/").form("/reveal/")
    response = operator.client.post(action, {**fields, "download": "raw"})
    assert response.content == store.queue("jobs").find(item_id).value
    assert response["Content-Disposition"].startswith("attachment;")
    assert "no-store" in response["Cache-Control"]
    assert store.audit.entries(item=item_id).entries[0].verb == "reveal"


def test_viewers_reveal_nothing(viewer: Desk, store: Store) -> None:
    item_id = _stored(store)
    page = viewer.open(f"/queues/jobs/items/{item_id}/")
    assert "An operator can reveal them." in page
    assert "/reveal/" not in page.html
    assert viewer.post(f"/queues/jobs/items/{item_id}/reveal/", {}).status == 403
    assert store.audit.entries(item=item_id).entries == ()


def test_frames_hide_what_pages_hide(store: Store) -> None:
    from pqadmin.live import frame_json
    from pqadmin.live.board import consistent_cuts

    _stored(store)
    queue = store.queue("jobs")
    reading = consistent_cuts.read(store, [queue.id], previous=None, ends_of=[queue.id], known_ends=())
    sent = reading.ends[queue.id].text + json.dumps(frame_json.item(reading.snapshot.queues[queue.id].min, RULES))
    assert "[redacted]" in reading.ends[queue.id].text
    assert "DE89" not in reading.ends[queue.id].text
    assert "hunter2" not in sent


ENDS_AT_A_KEY = (
    b"\x81\xa8password",
    b"\xff\x81\xa8password",
    b'\xff\xfe{"password":',
    b'\xff\xfe{"password":}',
    b'{"password":',
)


@pytest.mark.parametrize("value", ENDS_AT_A_KEY, ids=repr)
def test_a_value_of_which_every_byte_is_shown_is_not_marked_as_redacted(
    value: bytes, operator: Desk, store: Store
) -> None:
    """Under the key there is nothing, so nothing is hidden: on the page, in a file, in the editor, as a download."""
    item = store.create_queue("jobs").push(value, priority=1)
    page = operator.open(f"/queues/jobs/items/{item.id}/")
    assert "Parts of this value are redacted" not in page
    assert "▒" not in page
    assert hidden(value, rules_of(())) == ()
    assert masked(value, rules_of(())) == value
    assert operator.client.get(f"/queues/jobs/items/{item.id}/download/").content == value


@pytest.mark.parametrize("before", [b'\xff"', b'\xff" "', b'\x00\xff"\\', b'\xfe""" '], ids=repr)
def test_json_behind_binary_bytes_with_quotes_is_redacted(before: bytes) -> None:
    """A stray quote before it must not make its keys look like values."""
    value = before + b'{"a": "b", "password": "hunter2", "c": 1}'
    assert "hunter2" not in plain(value, rules_of(())).decode()
    assert b"hunter2" not in masked(value, rules_of(()))
    assert "hunter2" not in one_line(value, rules_of(()))
    (part,) = (value[begin:end] for begin, end in hidden(value, rules_of(())))
    assert part == b'"hunter2"'


def test_what_is_packed_deeper_than_is_looked_is_not_shown_as_bytes() -> None:
    value = b'{"password": "hunter2"}'
    for _ in range(MAX_LEVELS + 1):
        value = gzip.compress(value, mtime=0)
    seen = show(value, rules=rules_of(()), everything=True)
    assert seen.hides
    assert gzip.compress(b'{"password": "hunter2"}', mtime=0)[:8].hex(" ") not in seen.html
    assert "▒" in seen.html
