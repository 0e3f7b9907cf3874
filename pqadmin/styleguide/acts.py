"""Parts of the pages of acts on items, with extreme and hostile data, for the styleguide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pqadmin.dashboard.items import act_words as words
from pqadmin.dashboard.items.act_forms import ReprioritizeForm, RescheduleForm
from pqadmin.dashboard.items.act_previews import Preview
from pqadmin.dashboard.items.act_words import ITEM_ACTS
from pqadmin.dashboard.items.selection import Fate, Fates
from queues import Item

_ID = "01a1ffe194ec2e9e1c2da1c46c2359cca5f52c64"
_HOSTILE = "<script>alert('name')</script>⟨202E⟩" + "w" * 60


def sample_acts(items: Sequence[Item]) -> dict[str, Any]:
    """Return the forms, obstacles, previews and results of actions on items."""
    reprioritize = ReprioritizeForm({"how": "shift", "shift": "1e400"}, fifo=False, priority_type="int")
    reschedule = RescheduleForm({"when": "in", "amount": _HOSTILE})
    return {
        "reprioritize": reprioritize,
        "reschedule": reschedule,
        "picked": items[:4],
        "unlisted": 988,
        "fates": Fates(
            gone=1_200,
            changed=1,
            told=(
                Fate(item_id=_ID, text=f"{_HOSTILE} moved it to orders:eu:refunds at 14:02:11 UTC.", url="#"),
                Fate(item_id=_ID, text="ada edited it at 14:02:12 UTC. It is dead now.", url=""),
            ),
        ),
        "unfit": words.unfit(ITEM_ACTS["move"], [item for item in items if item.state == "leased"], "ada"),
        "previews": (
            Preview(
                lines=(
                    f"Priority 0 → {10**30}.",
                    "Between priority 4 (pushed 10:01:22 UTC) and priority 5 (pushed 2026-11-20 10:01:22 UTC).",
                    "By pop min: number about 1 204 331 of 4 200 001 now, number 1 then.",
                )
            ),
            Preview(lines=(f"No queue has this name. {_HOSTILE}",), bad=True),
        ),
    }
