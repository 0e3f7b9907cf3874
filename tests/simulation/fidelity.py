"""Random programs of two or three transactions, run step by step on any store that begins them.

A program says what is there first, and which transaction does what next. Its transcript is what every read
returned, which transaction was committed, and what is there in the end: two engines that are alike give the same one.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from queues.kv.errors import Conflict, OutcomeUnknown, StoreUnavailable, TransactionTooOld
from queues.kv.exactly_once import Attempt, MaybeCommitted, NotCommitted
from queues.kv.port import KeyValueStore, ReadTransaction

#: Programs share a cluster with no other caller's keys under this prefix.
PREFIX = b"fidelity/"
_LETTERS = b"abcdef"
_EDGES = [PREFIX + bytes([letter]) for letter in b"abcdefg"]


class Stepwise(KeyValueStore, Protocol):
    """A store whose transactions can be driven step by step."""

    def begin(self) -> Attempt:
        """Begin a transaction; its commit never retries."""


class Inconclusive(Exception):
    """The store did not say the result of a commit, as real ones may: run the program again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What one transaction does next."""

    transaction: int
    verb: str
    arguments: tuple[Any, ...] = ()
    #: The read is issued now and waited for at the transaction's end.
    later: bool = False

    def __str__(self) -> str:
        return f"{self.transaction}: {self.verb}{self.arguments}{' later' if self.later else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What is there first, and what is done to it."""

    seed: int
    contents: dict[bytes, bytes]
    steps: tuple[Step, ...]

    def __str__(self) -> str:
        return f"program {self.seed} on {self.contents}:\n" + "\n".join(map(str, self.steps))


def generate(seed: int) -> Program:
    """Return the program of a seed."""
    rng = random.Random(seed)
    contents = {_key(rng): _value(rng) for _ in range(rng.randint(0, 6))}
    queues = []
    for number in range(rng.choice((2, 2, 2, 3))):
        steps = [_step(rng, number) for _ in range(rng.randint(1, 6))]
        last = "cancel" if rng.random() < 0.05 else "commit"
        queues.append([Step(transaction=number, verb="begin"), *steps, Step(transaction=number, verb=last)])
    merged = []
    while queues := [queue for queue in queues if queue]:
        merged.append(rng.choice(queues).pop(0))
    return Program(seed=seed, contents=contents, steps=tuple(merged))


def run(program: Program, store: Stepwise) -> list[str]:
    """Run a program and return its transcript; raises `Inconclusive`."""

    def prepare(tr: Any) -> None:
        tr.clear_range(PREFIX, PREFIX + b"\xff")
        for key, value in program.contents.items():
            tr.set(key, value)

    try:
        store.transact(prepare)
    except (OutcomeUnknown, StoreUnavailable) as failure:
        raise Inconclusive from failure
    running: dict[int, Attempt] = {}
    waiting: dict[int, list[Callable[[], str]]] = {}
    transcript = []
    try:
        for step in program.steps:
            if step.verb == "begin":
                running[step.transaction] = store.begin()
                running[step.transaction].get_read_version()
                waiting[step.transaction] = []
                continue
            tr = running[step.transaction]
            if step.verb in ("commit", "cancel"):
                transcript += [answer() for answer in waiting[step.transaction]]
                transcript.append(f"{step.transaction}: {_end(tr, step.verb)}")
            elif (result := _do(tr, step)) is not None:
                answer = _answer(step, result)
                if step.later:
                    waiting[step.transaction].append(answer)
                else:
                    transcript.append(answer())
    except (NotCommitted, TransactionTooOld) as failure:  # the store was too slow for this program
        raise Inconclusive from failure
    finally:
        for tr in running.values():
            tr.cancel()
    final = store.read(lambda tr: tr.get_range(PREFIX, PREFIX + b"\xff", limit=1_000).wait())
    return [*transcript, f"in the end: {_shown(final)}"]


def _end(tr: Attempt, verb: str) -> str:
    if verb == "cancel":
        tr.cancel()
        return "canceled"
    try:
        tr.commit()
    except MaybeCommitted as failure:
        raise Inconclusive from failure
    except NotCommitted as failure:
        if not isinstance(failure.error, Conflict):
            raise Inconclusive from failure
        return "conflict"
    except Conflict:
        return "conflict"
    return "committed"


def _do(tr: Attempt, step: Step) -> Any:
    """Do a step; return a read's result, None for a write."""
    arguments, verb = step.arguments, step.verb.removeprefix("snapshot ")
    source: ReadTransaction = tr if verb == step.verb else tr.snapshot
    if verb == "get_key":
        begin, end, reverse = arguments
        return source.get_key(begin, end, reverse=reverse)
    if verb == "get_range":
        begin, end, limit, reverse = arguments
        return source.get_range(begin, end, limit=limit, reverse=reverse)
    return getattr(source, verb)(*arguments)


def _answer(step: Step, result: Any) -> Callable[[], str]:
    return lambda: f"{step} -> {_shown(result.wait())}"


def _shown(answer: Any) -> str:
    return repr([(bytes(key), bytes(value)) for key, value in answer] if isinstance(answer, list) else answer)


def _key(rng: random.Random) -> bytes:
    return PREFIX + bytes(rng.choices(_LETTERS, k=rng.choice((1, 1, 1, 2))))


def _range(rng: random.Random) -> tuple[bytes, bytes]:
    """Return a range that is mostly neither empty nor inverted."""
    ends = [rng.choice(_EDGES) if rng.random() < 0.7 else _key(rng) for _ in range(2)]
    begin, end = sorted(ends) if rng.random() < 0.95 else ends
    return begin, end if begin != end or rng.random() < 0.3 else _EDGES[-1]


def _value(rng: random.Random) -> bytes:
    if rng.random() < 0.6:
        return rng.choice((0, 1, 255, 256, 1 << 32, (1 << 64) - 1)).to_bytes(8, "little")
    return rng.randbytes(rng.choice((0, 1, 3, 7, 9, 12)))


def _step(rng: random.Random, number: int) -> Step:
    verb = rng.choice(_VERBS)
    later = False
    if verb in ("get", "get_key", "get_range"):
        later = rng.random() < 0.15
        name = f"snapshot {verb}" if rng.random() < 0.3 else verb
        if verb == "get":
            return Step(transaction=number, verb=name, arguments=(_key(rng),), later=later)
        begin, end = _range(rng)
        reverse = rng.random() < 0.5
        arguments = (begin, end, reverse) if verb == "get_key" else (begin, end, rng.choice((1, 1, 2, 3, 100)), reverse)
        return Step(transaction=number, verb=name, arguments=arguments, later=later)
    arguments = {
        "set": lambda: (_key(rng), _value(rng)),
        "clear": lambda: (_key(rng),),
        "clear_range": lambda: _range(rng),
        "add": lambda: (_key(rng), rng.choice((0, 1, -1, 1 << 40))),
        "max": lambda: (_key(rng), rng.choice((0, 1, 300, (1 << 64) - 1))),
        "add_read_conflict_key": lambda: (_key(rng),),
        "add_read_conflict_range": lambda: _range(rng),
    }[verb]()
    return Step(transaction=number, verb=verb, arguments=arguments)


#: As often as they are listed.
_VERBS = (
    *("get",) * 3,
    *("get_key",) * 2,
    *("get_range",) * 4,
    *("set",) * 4,
    *("clear",) * 2,
    *("clear_range",) * 2,
    *("add",) * 3,
    *("max",) * 2,
    "add_read_conflict_key",
    "add_read_conflict_range",
)
