"""The storage port: ordered keys and serializable transactions, in the FoundationDB binding's names.

Rules above this package are written once against these protocols and never ask which engine they run on.
Invariants that every engine keeps:

- A read-write transaction is serializable; `snapshot` reads inside it are not checked for conflicts.
- Reads see the transaction's own earlier writes.
- Issuing a read never blocks: it returns a `Result`; `wait()` gives the answer. Independent reads are issued
  together and waited for afterwards.
- Keys are at most 511 bytes, values at most 100,000 bytes, one transaction at most 10 MB and 5 seconds.
- A function given to `transact` or `read` may run more than once, is pure and short. Whatever it mints
  (ids, the time) is minted before. It never begins a transaction of its own: that raises
  `NestedTransaction`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

Value_co = TypeVar("Value_co", covariant=True)


class Ready(Generic[Value_co]):
    """A read's answer that is already known."""

    __slots__ = ("_answer",)

    def __init__(self, answer: Value_co) -> None:
        self._answer = answer

    def wait(self) -> Value_co:
        """Return the answer."""
        return self._answer


T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
R = TypeVar("R")
A = TypeVar("A")
R_contra = TypeVar("R_contra", contravariant=True)
A_co = TypeVar("A_co", covariant=True)

#: Bytes; the smallest of what the engines allow (LMDB's).
MAX_KEY_SIZE = 511
#: Bytes; FoundationDB's limit.
MAX_VALUE_SIZE = 100_000
#: Bytes of keys and values written; FoundationDB's limit.
MAX_TRANSACTION_SIZE = 10_000_000
#: Seconds; FoundationDB's limit, kept by every engine so that code moves between them.
MAX_TRANSACTION_SECONDS = 5.0

KeyValue = tuple[bytes, bytes]


class Result(Protocol[T_co]):
    """The answer of a read that is under way."""

    def wait(self) -> T_co:
        """Return the answer, blocking until it is there."""


class ReadTransaction(Protocol):
    """Reads of one consistent version of the store."""

    def get(self, key: bytes) -> Result[bytes | None]:
        """Read one key's value; None when the key is absent."""

    def get_key(self, begin: bytes, end: bytes, *, reverse: bool = False) -> Result[bytes | None]:
        """Find the first (or last) key in [begin, end); None when there is none."""

    def get_range(self, begin: bytes, end: bytes, *, limit: int, reverse: bool = False) -> Result[list[KeyValue]]:
        """Read at most `limit` pairs of [begin, end) in key order, or backwards."""

    def get_read_version(self) -> int:
        """Return the version that this transaction reads; versions grow with every commit."""

    @property
    def reads(self) -> int:
        """How many reads this transaction has issued so far, so that tests can assert it."""


class Transaction(ReadTransaction, Protocol):
    """One serializable read-write transaction."""

    @property
    def snapshot(self) -> ReadTransaction:
        """Reads that see this transaction's view but add no read conflicts."""

    def set(self, key: bytes, value: bytes) -> None:
        """Write one pair, replacing what was there."""

    def clear(self, key: bytes) -> None:
        """Remove one key; an absent key is no error."""

    def set_new(self, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        """Write pairs with keys that do not exist. They hold ids that were made for them.

        As many calls of `set`, and cheaper where the engine can do them at once. An engine that notices that one of
        the keys exists writes nothing at all and raises. None of them is ever added to.
        """

    def clear_many(self, keys: Sequence[bytes]) -> None:
        """Remove these keys. As many calls of `clear`, and cheaper where the engine can do them at once.

        They were read here, and none of them is ever added to.
        """

    def clear_range(self, begin: bytes, end: bytes) -> None:
        """Remove every key in [begin, end). Adds no read conflict: see the design on ready items."""

    def add(self, key: bytes, delta: int) -> None:
        """Add to a 64-bit little-endian counter without reading it; absent counts as 0, negatives wrap."""

    def add_all(self, deltas: Mapping[bytes, int]) -> None:
        """Add to counters, at least one. As many calls of `add`, and cheaper where the engine can do them at once."""

    def max(self, key: bytes, value: int) -> None:
        """Raise an unsigned 64-bit little-endian number to at least `value`."""

    def add_read_conflict_key(self, key: bytes) -> None:
        """Fail this commit if another transaction writes `key` first. Call it before writing `key`."""

    def add_read_conflict_keys(self, keys: Sequence[bytes]) -> None:
        """Fail this commit if another transaction writes one of these keys first. Call it before writing them."""

    def add_read_conflict_range(self, begin: bytes, end: bytes) -> None:
        """Fail this commit if another transaction writes in [begin, end) first."""

    def use_reserve(self) -> None:
        """Let this transaction grow a store that is over its limit. It is for taking and repairing, not for arrivals.

        Without it, a transaction that leaves a full store larger than it found it raises `StoreFull`; one that
        clears as much as it sets, and one that only counts, always passes.
        """

    def stamp(self) -> int:
        """Return the next push-order number.

        Increasing within a transaction, and across transactions that do not overlap; never read from
        storage, so it conflicts with no transaction.
        """

    def stamps(self, n: int) -> range:
        """Return the next `n` push-order numbers, at least one. Each is larger by 1 than the one before."""


@dataclass(frozen=True, slots=True)
class Refused:
    """An answer that refuses a request: it wrote nothing, and its caller raises `error`."""

    error: Exception


#: What runs a function as `KeyValueStore.transact` does.
Transact = Callable[[Callable[[Transaction], Any]], Any]


class Server(Protocol[R_contra, A_co]):
    """Does the same kind of thing for many callers in one transaction: see `KeyValueStore.serve`.

    There is one server for what may be done together; stores tell servers apart by identity.
    """

    @property
    def wire(self) -> "Wire | None":
        """What carries its requests to another process of this machine. None: each process executes its own."""

    @property
    def contended(self) -> bool:
        """Whether its transactions take from each other, like pops; if not, they hardly ever conflict."""

    def prepare(self, requests: Sequence[R_contra]) -> Sequence[Any]:
        """Return the requests with the ids and times that they leave open. Called once for each batch."""

    def execute(self, tr: Transaction, requests: Sequence[Any]) -> Sequence[A_co | Refused]:
        """Answer the first of prepared requests, one at least, in order. The rest are asked again in another batch.

        Pure and short, as what is given to `transact`. An error from it undoes everything; each request is then served
        alone, so it is told to its own caller only.
        """

    def conduct(self, transact: Transact, requests: Sequence[R_contra]) -> Sequence[A_co | Refused]:
        """Prepare a batch, and execute it in a transaction of its own, which may be tried again.

        Called by stores with transactions that may conflict with those of other processes, so that a server can do
        something better than to try and try again.
        """


class Wire(Protocol):
    """Carries requests of one store to another process of this machine that executes them, and their answers back."""

    @property
    def root(self) -> bytes:
        """What identifies this store among those in the same file."""

    def weight(self, request: Any) -> int:
        """Return about how many bytes a request and its answer have. 0 where no other process can execute it."""

    def pack(self, tickets: "Sequence[Ticket]") -> bytes | None:
        """Return these requests as bytes; None when one of them cannot be sent."""

    def unpack(self, data: bytes | memoryview) -> "Sequence[tuple[Server[Any, Any], Any] | None]":
        """Return what executes each request here, and the request. None for one that cannot be executed here."""

    def pack_answer(self, ticket: "Ticket") -> bytes:
        """Return the answer or the error of a request as bytes."""

    def unpack_answer(self, ticket: "Ticket", data: bytes) -> Any:
        """Return the answer of a request, or its `Refused` error."""


class Ticket:
    """A request, and its answer or error once it has landed."""

    __slots__ = ("answer", "answered", "doubt", "error", "landing", "request", "server")

    #: Its caller is in another process.
    remote = False

    def __init__(self, server: Server[Any, Any] | None, request: Any, landing: "Landing | None") -> None:
        self.server = server
        self.request = request
        #: Where it lands; None: a thread waits for it.
        self.landing = landing
        self.answer: Any = None
        self.error: BaseException | None = None
        self.answered = False
        #: What tells an engine whether it was executed before, where that is not known, and its place there.
        self.doubt: Any = None

    def result(self) -> Any:
        """Return the answer, or raise the error."""
        error, self.error = self.error, None
        if error is None:
            return self.answer
        try:
            raise error
        finally:
            del error


class Landing(Protocol):
    """Where tickets arrive that are answered."""

    def land(self, tickets: Sequence[Any]) -> None:
        """Take answered tickets of this landing. Called once for all of a batch. Never blocks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """A count of microseconds that all processes of a store see alike, while its epoch stays the same."""

    #: Counts of different epochs have nothing to do with each other.
    epoch: str
    micros: int


class KeyValueStore(Protocol):
    """One open store. Thread-safe; not usable in a forked child (`ForkedStore`)."""

    def read(self, fn: Callable[[ReadTransaction], T], *, background: bool = False) -> T:
        """Run `fn` on one consistent version and return its result. Never waits for writers.

        `background` lets a cluster serve all other callers first: for sweeps, counts and copies.
        """

    def transact(self, fn: Callable[[Transaction], T], *, background: bool = False) -> T:
        """Run `fn`, commit, and return its result once it is durable: the only retry loop there is.

        A return means that it was applied exactly once. An exception from `fn` undoes all that it wrote and is
        raised to the caller; `OutcomeUnknown` alone leaves it open whether it was applied.
        """

    def serve(self, server: Server[R, A], request: R) -> A:
        """Have `server` serve this request in one batch with other waiting ones, and return its answer.

        Batches have at most 200 requests, all made before their transaction reads; a batch is tried again as it is.
        A return means that the request was served exactly once. An interrupted caller withdraws a request that
        is not served yet, and else waits for its outcome.
        """

    def submit(self, ticket: Ticket) -> None:
        """Have a request served as `serve` does, without waiting: its ticket goes to its landing."""

    def execute_here(self, ticket: Ticket) -> bool:
        """Have a request served in the calling thread, and return True; its ticket does not land.

        Only where nothing but the disk is waited for: False where another request, process or machine is in the way.
        """

    def withdraw(self, ticket: Ticket) -> bool:
        """Take a request back; False when it is being served, or was: then it lands."""

    def watch(self, known: Mapping[bytes, bytes | None], *, timeout: float) -> bool:
        """Block until a key's value differs from what is known, or `timeout` seconds have passed.

        True: something may have changed (spurious wake-ups are allowed). False: the time is up. A change made
        before the call but after `known` was read returns at once, so no wake-up is lost.
        """

    def interrupt(self) -> None:
        """Wake every thread that is in `watch`; each returns True. Used at shutdown."""

    def host(self, wire: Wire) -> None:
        """Let this process execute requests of other ones that come by this wire, where the engine does that."""

    def count(self) -> Count:
        """Return the count of microseconds that all processes of this store share. No wall clock has a part in it."""

    def keep_time(self, clock: Callable[[], float]) -> None:
        """Take the times that the engine itself writes from this clock, in seconds since the epoch."""

    def reads(self) -> int:
        """Return how many reads have been issued through this store since it was opened in this process."""

    def size(self) -> tuple[int, int]:
        """Return (bytes used, bytes allowed); allowed is 0 where the engine sets no limit."""

    def close(self) -> None:
        """Finish what was accepted, refuse the rest with `StoreClosed`, release the files. Idempotent."""
