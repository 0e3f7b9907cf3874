"""Ids that are taken already: no record is written over that of another item.

Ids have 111.9 bits of entropy, so this tells of damage, or of an undo to the place of another item. Keys that only an
item of the same id has are read for that: these reads conflict with no other item.
"""

from collections.abc import Iterable

from queues.errors import IdTaken
from queues.kv.port import ReadTransaction


def taken() -> IdTaken:
    """Build the error of an item with the id of another item of its queue."""
    return IdTaken(
        "Another item here has the same id: nothing was changed. “doctor --repair” gives one of them another id."
    )


def refuse_minted(tr: ReadTransaction, keys: Iterable[bytes]) -> None:
    """Raise `IdTaken` when one of these keys of new records holds something."""
    for read in [tr.get(key) for key in keys]:
        if read.wait() is not None:
            raise minted_before()


def minted_before() -> IdTaken:
    """Build the error of a new id that a record of the store has already."""
    return IdTaken("A record of this new id is in the store already: nothing was changed. Try again.")
