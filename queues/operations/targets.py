"""Targets of a store: limits by pattern, and the defaults."""

from collections.abc import Mapping
from typing import Unpack

from queues.catalog import directory
from queues.context import StoreContext
from queues.errors import BadSetting, PatternNotFound
from queues.health import Target, TargetRules, limits_of
from queues.health.target_records import clear_pattern, read_rules, write_defaults, write_pattern
from queues.kv.port import ReadTransaction, Transaction
from queues.model.limits import LimitArguments, Limits, check_limits
from queues.model.name_patterns import check_glob


class StoredTargets:
    """The targets of the queues of one store. Thread-safe.

    A queue's own limits are settings of the queue: `queue.configure(target_oldest=900)`. Every limit that a queue does
    not set is inherited: from the most specific pattern that matches its name and sets it, else from the defaults. The
    most specific pattern has the most literal characters; among equals the first by text counts.
    """

    def __init__(self, context: StoreContext) -> None:
        self._context = context

    def rules(self, *, tr: ReadTransaction | None = None) -> TargetRules:
        """Return all patterns and the defaults, which tell the targets of any queue."""
        return self._context.read(lambda tr: read_rules(tr, self._context.keyspace), tr)

    def patterns(self, *, tr: ReadTransaction | None = None) -> Mapping[str, Limits]:
        """Return the limits by pattern, the most specific pattern first."""
        return self.rules(tr=tr).patterns

    def of(self, queue: str, *, tr: ReadTransaction | None = None) -> dict[str, Target]:
        """Return each limit of a queue and where it comes from; raise `QueueNotFound`."""

        def look(tr: ReadTransaction) -> dict[str, Target]:
            config = directory.find(tr, self._context.keyspace, queue)
            return self.rules(tr=tr).resolve(config.name, limits_of(config))

        return self._context.read(look, tr)

    def set(self, pattern: str, *, tr: Transaction | None = None, **limits: Unpack[LimitArguments]) -> str:
        """Set the limits of a pattern and return it in its one spelling. A limit that is not named is inherited.

        At most 200 patterns have targets. Raises `BadGlob`, `BadName`, `BadSetting`.
        """
        glob, checked = check_glob(pattern), check_limits(limits)
        if not checked.given:
            raise BadSetting("Give a target at least: a pattern without any sets nothing.")
        self._context.transact(lambda tr: write_pattern(tr, self._context.keyspace, glob, checked), tr)
        return glob

    def remove(self, pattern: str, *, tr: Transaction | None = None) -> None:
        """Remove a pattern with its limits; raise `BadGlob`, `BadName`, `PatternNotFound`."""
        glob = check_glob(pattern)

        def write(tr: Transaction) -> None:
            if not clear_pattern(tr, self._context.keyspace, glob):
                raise PatternNotFound("There are no targets for {glob}.", glob=glob)

        self._context.transact(write, tr)

    def set_defaults(self, *, tr: Transaction | None = None, **limits: Unpack[LimitArguments]) -> Limits | None:
        """Set the defaults, and return those before; None where they are the same. Raises `BadSetting`.

        A site does so at its start, by its environment: all processes of a store judge by the same defaults.
        """
        checked = check_limits(limits)
        return self._context.transact(lambda tr: write_defaults(tr, self._context.keyspace, checked), tr)
