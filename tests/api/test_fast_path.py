"""The fast path: what it answers is what the usual way answers, byte for byte; what it leaves is left untouched."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from ipaddress import ip_network
from typing import Any, NamedTuple

import pytest
from django.utils import timezone
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from pqadmin.accounts.caller import Verb
from pqadmin.accounts.models import Token
from pqadmin.api import fast_path
from pqadmin.api.cors import Cors
from pqadmin.api.fast_path import FastPath
from pqadmin.api.handler import ApiHandler
from pqadmin.conf.proxy import TrustedProxy
from pqadmin.server.admission import Admission
from pqadmin.server.whole_request import Answer, WholeRequest, fields_of, whole_request
from queues import Store
from tests.api.conftest import cheap_passwords, granted, in_thread, person, site, token

__all__ = ["cheap_passwords", "granted", "person", "site", "token"]

pytestmark = pytest.mark.django_db(transaction=True)

#: What differs between two executions: ids, counts, tokens of leases, times.
_OWN = re.compile(rb'"(?:id|lease)": "[^"]+"|"count": [0-9]+|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+(?:\+00:00|Z)?')
_OWN_HEADERS = {b"PQ-Time", b"PQ-Id", b"PQ-Count", b"PQ-Lease", b"Content-Length"}
PEER = "192.0.2.7"


class Both:
    """The same requests to two queues of one history: to the first by the fast path, to the second the usual way."""

    def __init__(self, secret: str, **limits: Any) -> None:
        self.secret = secret
        cors = Cors(ApiHandler(), limits.get("origins", ()))
        self.admission = Admission(
            cors, per_address=limits.get("per_address", 0), per_session=0, sockets_per_address=0, cookie="s"
        )
        proxy = TrustedProxy(self.admission, trusted=limits.get("trusted", ()))
        self.usual_way = proxy
        self.fast = FastPath(proxy, self.admission, cors)
        self.leases = {"twin-1": "none", "twin-2": "none"}

    def request(self, queue: str, path: str, body: bytes, *fields: str) -> bytes:
        body = body.replace(b"LEASE", self.leases[queue].encode())
        lines = [f"POST /api/v1/queues/{queue}/{path} HTTP/1.1", "Host: localhost"]
        lines += [f"Authorization: Bearer {self.secret}", f"Content-Length: {len(body)}", *fields]
        head = "\r\n".join([*lines, "", ""]).replace("Idempotency-Key: ", f"Idempotency-Key: {queue}-")
        return head.encode() + body

    async def answers(self, path: str, body: bytes, *fields: str) -> tuple[Answer | None, Answer]:
        """Return the answer of the fast path, if it gave one, and that of the usual way."""
        whole = whole_request(self.request("twin-1", path, body, *fields))
        assert whole is not None
        answering = self.fast.begin(whole, PEER)
        fast = None if answering is None else await answering
        if fast is None:  # nothing was done: the usual way does it
            self._note("twin-1", await self._usual(whole))
        else:
            self._note("twin-1", fast)
        other = whole_request(self.request("twin-2", path, body, *fields))
        assert other is not None
        usual = await self._usual(other)
        self._note("twin-2", usual)
        return fast, usual

    async def _usual(self, whole: WholeRequest) -> Answer:
        found = fields_of(whole.head)
        assert found is not None
        target, fields = found
        path, _, query = target.partition(b"?")
        fields += [(b"content-length", whole.length.encode())] if whole.length else []
        fields += [(b"idempotency-key", whole.key.encode())] if whole.key else []
        scope = {"type": "http", "method": "POST", "path": path.decode(), "raw_path": path, "query_string": query}
        scope |= {"headers": fields, "client": [PEER, 1], "scheme": "http", "http_version": "1.1", "root_path": ""}
        sent: list[Any] = []
        parts = iter([{"type": "http.request", "body": whole.body}])

        async def receive() -> Any:
            return next(parts, None) or await asyncio.Event().wait()  # the client stays

        async def send(message: Any) -> None:
            sent.append(message)

        await self.usual_way(scope, receive, send)
        return Answer(sent[0]["status"], sent[0]["headers"], sent[1]["body"])

    def _note(self, queue: str, answer: Answer) -> None:
        if found := re.search(rb'"key": null, .*"lease": "([^"]+)"', answer.body):
            self.leases[queue] = found[1].decode()


def comparable(answer: Answer) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    length = dict(answer.headers).get(b"Content-Length")
    assert answer.status == 204 or length == b"%d" % len(answer.body)
    headers = [(name, b"" if name in _OWN_HEADERS else _common(value)) for name, value in answer.headers]
    return answer.status, headers, _common(answer.body)


def _common(text: bytes) -> bytes:
    return _OWN.sub(b"own", text).replace(b"twin-1", b"twin").replace(b"twin-2", b"twin")


@asynccontextmanager
async def twins(site: Store, secret: str, **limits: Any) -> AsyncIterator[Both]:
    for name in ("twin-1", "twin-2"):
        await in_thread(site.create_queue, name, codec="json")
    yield Both(secret, **limits)


class Case(NamedTuple):
    """A request, and whether the fast path answers it."""

    path: str
    body: bytes = b""
    fields: tuple[str, ...] = ()
    fast: bool = True


JSON = "Content-Type: application/json"
CASES = [
    Case("items", b'{"value_json": {"a": 1}, "priority": 5}', (JSON,)),
    Case("items", b'{"value_json": {"a": 1}, "priority": 5}', ("content-type: application/json; charset=utf-8",)),
    Case("items", b'{"value": "7", "priority": 5, "delay": 3600}'),
    Case("items", b'{"items": [{"value": "1", "priority": 2}, {"value": "2", "priority": 2}]}', (JSON,)),
    Case("items?return=value", b'{"value": "\\"\xc3\xa9\\"", "priority": -1}', (JSON,)),
    Case("items", b'"raw"', ("Content-Type: application/octet-stream", "PQ-Priority: 3")),
    Case("items", b'"raw"', ("Content-Type: text/plain", "PQ-Priority: 3", "PQ-Delay: 99")),
    Case("items", b'"raw"', ("Content-Type: text/plain", "PQ-Priority: x")),
    Case("items", b'{"value": "7", "priority": 5}', (JSON, "PQ-Priority: 3")),
    Case("items", b'{"value": "no json", "priority": 5}', (JSON,)),
    Case("items", b'{"value": "7", "priority": "high"}', (JSON,)),
    Case("items", b'{"value": "7", "priority": 1e999}', (JSON,)),
    Case("items", b'{"value": "7", "unknown": 5}', (JSON,)),
    Case("items", b'{"value": "7"', (JSON,)),
    Case("items?retrun=value", b'{"value": "7", "priority": 5}', (JSON,), fast=False),
    Case("items", b"", (JSON,)),
    Case("items", b'{"value": "1", "priority": 1}', ("Content-Type: application/x-ndjson",), fast=False),
    Case("items", b"<a/>", ("Content-Type: application/xml",), fast=False),
    Case("items", b"x", ("Content-Type: multipart/form-data; boundary=x",), fast=False),
    Case("items", b"x", (JSON, "Content-Encoding: gzip"), fast=False),
    Case("items?return=other", b'{"value": "7", "priority": 5}', (JSON,), fast=False),
    Case("items", b'{"value": "8", "priority": 5}', (JSON, "Idempotency-Key: once")),
    Case("items", b'{"value": "8", "priority": 5}', (JSON, "Idempotency-Key: once")),
    Case("items", b'{"value": "9", "priority": 5}', (JSON, "Idempotency-Key: once")),
    Case("items", b'{"value": "8", "priority": 5}', (JSON, f"Idempotency-Key: {'k' * 201}")),
    Case("pop"),
    Case("pop?n=2&end=max", b"", (JSON,)),
    Case("pop?n=0", fast=False),
    Case("pop?n=1&n=2", fast=False),
    Case("pop", b'{"n": 2}', (JSON,), fast=False),
    Case("pop?end=middle", fast=False),
    Case("pop?wait=0"),
    Case("pop?wait=0.01", fast=False),
    Case("pop", b"", ("Accept: application/octet-stream",)),
    Case("pop?n=2", b"", ("Accept: text/plain",)),
    Case("pop", b"", ("Accept: image/png",)),
    Case("pop", b"", ("Idempotency-Key: popped",)),
    Case("pop", b"", ("Idempotency-Key: popped",)),
    Case("pop?n=9"),
    Case("pop", b"", ("Accept: application/octet-stream",)),
    Case("pop", b"", ("Idempotency-Key: nothing",)),
    Case("items", b'{"items": [{"value": "1", "priority": 2}, {"value": "2", "priority": 2}]}', (JSON,)),
    Case("lease?seconds=60&worker=w%20x"),
    Case("extend", b'{"leases": ["LEASE"], "seconds": 90}', (JSON,)),
    Case("extend", b'{"leases": ["LEASE", "none"]}', (JSON,)),
    Case("release?return=value", b'{"leases": ["LEASE"], "reason": "later"}', (JSON,)),
    Case("lease", b"", ("PQ-Client: 0123456789abcdef 7 host program",)),
    Case("ack", b'{"leases": ["LEASE"]}', (JSON,)),
    Case("ack", b'{"leases": ["LEASE"]}', (JSON,)),
    Case("ack", b'{"leases": ["LEASE"], "must_hold": true}', (JSON,)),
    Case("ack", b'{"leases": ["LEASE"]}', (JSON, "Idempotency-Key: acked")),
    Case("lease", b"", ("Idempotency-Key: leased",)),
    Case("release", b'{"leases": ["LEASE"], "delay": 0}', (JSON, "Idempotency-Key: released")),
    Case("release", b'{"leases": ["LEASE"], "delay": 0}', (JSON, "Idempotency-Key: released")),
    Case("ack", b'{"leases": []}', (JSON,), fast=False),
    Case("ack", b"", (JSON,), fast=False),
    Case("ack", b"[", (JSON,), fast=False),
    Case("ack", b'{"leases": [1]}', (JSON,), fast=False),
    Case("peek", fast=False),
    Case("pause", b"{}", (JSON,), fast=False),
    Case("items", b'{"value": "7", "priority": 5}', (JSON,)),
    Case("pop"),
    Case("items/none/release", b"{}", (JSON,), fast=False),
    Case("resume", fast=False),
    Case("pop?n=9", b"", ("Accept-Language: zh-Hans", "User-Agent: a (b; c)")),
    Case("nothing", fast=False),
]


async def test_the_fast_path_answers_as_the_usual_way(site: Store, token: Callable[..., str]) -> None:
    async with twins(site, await in_thread(token)) as both:
        for case in CASES:
            fast, usual = await both.answers(case.path, case.body, *case.fields)
            assert (fast is not None) is case.fast, (case, usual)
            if fast is not None:
                assert comparable(fast) == comparable(usual), case
    depths = await in_thread(lambda: [site.queue(name).totals() for name in ("twin-1", "twin-2")])
    assert depths[0] == depths[1]


field_text = st.text("abc019;,=*/-_. ", min_size=1, max_size=12).map(str.strip).filter(bool)
paths = st.sampled_from(["items", "pop", "lease", "ack", "release", "extend", "items/x", "act"])
query = st.sampled_from(["", "?n=2", "?end=max", "?n=%31", "?n=x", "?return=value", "?seconds=1e9", "?%00", "?a&b=;"])
bodies = st.one_of(
    st.sampled_from([b"", b"{}", b"null", b'{"leases": ["LEASE"]}', b'{"leases": ["LEASE"], "seconds": 0}']),
    st.builds(
        lambda value: b'{"value": %s, "priority": 1}' % value, st.sampled_from([b'"1"', b"1", b"null", b'"\\u0000"'])
    ),
    st.binary(max_size=8),
)
fields = st.lists(
    st.one_of(
        st.sampled_from([JSON, "Content-Type: text/plain", "PQ-Priority: 1", "Accept: */*", "Idempotency-Key: k"]),
        st.builds("{}: {}".format, st.sampled_from(["Accept", "Content-Type", "If-Match", "PQ-Client"]), field_text),
    ),
    max_size=3,
    unique_by=lambda line: line.partition(":")[0],
)


@hypothesis_settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(requests=st.lists(st.tuples(paths, query, bodies, fields), min_size=1, max_size=4))
def test_any_requests_are_answered_the_same(requests: Any, fast_twins: Callable[[Any], Any]) -> None:
    for fast, usual in fast_twins(requests):
        if fast is not None:
            assert comparable(fast) == comparable(usual)


@pytest.fixture
def fast_twins(site: Store, token: Callable[..., str]) -> Callable[[Any], Any]:
    both = Both(token())
    for name in ("twin-1", "twin-2"):
        site.create_queue(name)

    def run(requests: Any) -> Any:
        async def each() -> list[tuple[Answer | None, Answer]]:
            return [await both.answers(path + query, body, *fields) for path, query, body, fields in requests]

        return asyncio.run(each())

    return run


async def test_what_holds_for_the_token_is_looked_at_each_time(
    site: Store, token: Callable[..., str], person: Callable[..., Any]
) -> None:
    secret = await in_thread(token)
    push = ("items", b'{"value": "1", "priority": 1}', JSON)
    async with twins(site, secret) as both:
        assert (await both.answers(*push))[1].status == 201
        await Token.objects.aupdate(verbs=[Verb.TAKE])
        fast, usual = await both.answers(*push)
        assert fast is not None
        assert usual.status == 403
        assert comparable(fast) == comparable(usual)
        await Token.objects.aupdate(queues=["other"])
        fast, usual = await both.answers("pop", b"")
        assert fast is not None
        assert usual.status == 404
        assert comparable(fast) == comparable(usual)
        await Token.objects.aupdate(queues=["*"], expires_at=timezone.now() - timedelta(days=1))
        assert [*map(_status, await both.answers("pop", b""))] == [None, 401]
        await Token.objects.aupdate(expires_at=None)
        assert [*map(_status, await both.answers("pop", b""))] == [200, 200]
        await Token.objects.aupdate(revoked_at=timezone.now())
        assert [*map(_status, await both.answers("pop", b""))] == [None, 401]
        both.secret = "pq_unknown"
        assert [*map(_status, await both.answers("pop", b""))] == [None, 401]


def _status(answer: Answer | None) -> int | None:
    return None if answer is None else answer.status


async def test_a_rate_is_counted_once_and_told(site: Store, token: Callable[..., str]) -> None:
    secret = await in_thread(token)
    await Token.objects.aupdate(rate=3)
    async with twins(site, secret) as both:
        found = [await both.answers("pop", b"") for _ in range(4)]
    assert dict(found[0][0].headers)[b"RateLimit"] == b'"token";r=2;t=1'
    assert dict(found[0][1].headers)[b"RateLimit"] == b'"token";r=1;t=1'
    assert [_status(one) for pair in found[:2] for one in pair] == [200, 200, 200, 429]


async def test_an_address_without_a_place_is_refused(
    site: Store, token: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with twins(site, await in_thread(token), per_address=1) as both:
        looked_up: list[object] = []
        with both.admission.place(PEER), monkeypatch.context() as patched:
            patched.setattr(fast_path, "caller_now", looked_up.append)
            assert [*map(_status, await both.answers("pop", b""))] == [None, 429]
        assert not looked_up
        assert [*map(_status, await both.answers("pop", b""))] == [200, 200]


async def test_a_proxy_names_the_client_and_origins_are_told(site: Store, token: Callable[..., str]) -> None:
    secret = await in_thread(token)
    trusted = (ip_network(PEER),)
    async with twins(site, secret, trusted=trusted, per_address=1, origins=["https://shop.example"]) as both:
        for origin in ("https://shop.example", "https://other.example"):
            fast, usual = await both.answers("pop", b"", f"Origin: {origin}", "X-Forwarded-For: 198.51.100.4")
            assert fast is not None
            assert comparable(fast) == comparable(usual)
            assert (b"vary", b"Origin") in fast.headers
        with both.admission.place("198.51.100.4"):
            assert [*map(_status, await both.answers("pop", b"", "X-Forwarded-For: 198.51.100.4"))] == [None, 429]
            assert [*map(_status, await both.answers("pop", b"", "X-Forwarded-For: 198.51.100.5"))] == [200, 200]


async def test_a_queue_of_a_new_name_is_found_at_once(site: Store, token: Callable[..., str]) -> None:
    async with twins(site, await in_thread(token)) as both:
        assert [*map(_status, await both.answers("pop", b""))] == [200, 200]
        await in_thread(site.rename_queue, "twin-1", "elsewhere")
        await in_thread(site.rename_queue, "twin-2", "elsewhere-2")
        fast, usual = await both.answers("pop", b"")
        assert fast is not None
        assert (fast.status, usual.status) == (404, 404)


WHOLE = b"POST /api/v1/queues/q/items HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nIdempotency-Key: k\r\n\r\n{}"


def test_a_request_is_split_into_what_repeats_and_what_varies() -> None:
    found = whole_request(WHOLE)
    assert found == WholeRequest(b"POST /api/v1/queues/q/items HTTP/1.1\r\nHost: a", "2", "k", b"{}")
    assert fields_of(found.head) == (b"/api/v1/queues/q/items", [(b"host", b"a")])


@pytest.mark.parametrize("cut", range(len(WHOLE)))
def test_no_part_of_a_request_is_whole(cut: int) -> None:
    assert whole_request(WHOLE[:cut]) is None


@pytest.mark.parametrize(
    ("there", "instead"),
    [
        (b"Content-Length: 2", b"Content-Length: 2\r\nContent-Length: 2"),
        (b"Content-Length: 2", b"Content-Length: 1"),
        (b"Content-Length: 2", b"Content-Length: 3"),
        (b"Content-Length: 2", b"Content-Length: +2"),
        (b"Content-Length: 2", b"Content-Length: 2, 2"),
        (b"Content-Length: 2", b"Content-Length:\t2"),
        (b"Content-Length: 2", b"Content-Length : 2"),
        (b"Content-Length: 2", b"Content-Length: 2 "),
        (b"Content-Length: 2", b"X: y\r\n Content-Length: 2"),
        (b"Content-Length: 2", b"Content-Length: 2\r\nTransfer-Encoding: chunked"),
        (b"Content-Length: 2", b"Content-Length: 2\r\nTransfer-Encoding: identity"),
        (b"Content-Length: 2", b"Content-Length: 2\r\nExpect: 100-continue"),
        (b"Content-Length: 2", b"Content-Length: 2\r\nConnection: close"),
        (b"Content-Length: 2", b"Content-Length: 2\r\nUpgrade: websocket"),
        (b"Content-Length: 2", b"Content-Length: 2\r\nCookie: a=b"),
        (b"Host: a", b"Host: a\r\nHost: b"),
        (b"Host: a", b"X: a"),
        (b"Host: a", b"Host: a\n"),
        (b"Host: a\r\n", b"Host: a\n"),
        (b"Host: a", b"Host: a\r\nX: a\0b"),
        (b"Host: a", b"Host: a\r\nX: a\rb"),
        (b"Host: a", b"Host: a\r\nX: a\r\n\tb"),
        (b"Host: a", b"Host: a\r\nX_Y: a"),
        (b"Host: a", b"Host: a\r\nX: \xe9"),
        (b"Host: a", b"Host: a\r\nX:"),
        (b"Host: a", b"Host: a\r\n: a"),
        (b"Idempotency-Key: k", b"Idempotency-Key: k\r\nidempotency-key: k"),
        (b"Idempotency-Key: k", b"Idempotency-Key: k l"),
        (b"HTTP/1.1", b"HTTP/1.0"),
        (b"HTTP/1.1", b"HTTP/1.1 "),
        (b" HTTP/1.1", b"  HTTP/1.1"),
        (b"POST", b"post"),
        (b"POST", b"\r\nPOST"),
        (b"/q/", b"/\xc3\xa9/"),
        (b"{}", b"{}POST"),
    ],
)
def test_what_could_be_read_in_two_ways_is_left_to_the_parser(there: bytes, instead: bytes) -> None:
    assert there in WHOLE
    found = whole_request(WHOLE.replace(there, instead))
    assert found is None or fields_of(found.head) is None
