"""Records of a remote store: the audit and the targets, as far as the token may read them."""

from datetime import datetime
from typing import Any

from queues.audit.audit_log import Audit, AuditEntry
from queues.context import StoreContext
from queues.health import TargetRules
from queues.kv.port import ReadTransaction
from queues.model.paging import RecordPage
from queues.operations.targets import StoredTargets
from queues.remote.connection import Connection
from queues.remote.delivery import refuse
from queues.remote.shapes import rules_of


class RemoteAudit(Audit):
    """The audit of a remote store: its `entries`."""

    def __init__(self, context: StoreContext, connection: Connection) -> None:
        super().__init__(context)
        self._connection = connection

    def entries(  # type: ignore[override] # those that the HTTP API has
        self,
        *,
        queue: str | None = None,
        named: str | None = None,
        actor: str | None = None,
        item: str | None = None,
        verb: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> RecordPage[AuditEntry]:
        """Return a page of actions, the newest first."""
        query: dict[str, Any] = {"queue": queue, "named": named, "actor": actor, "item": item, "verb": verb}
        query |= {"limit": limit, "cursor": after}
        for name, moment in (("since", since), ("until", until)):
            query[name] = None if moment is None else moment.isoformat()
        page = self._connection.get("audit", **query)
        entries = (AuditEntry(**{**shape, "at": datetime.fromisoformat(shape["at"])}) for shape in page["entries"])
        return RecordPage(entries=tuple(entries), cursor=page["next"])


class RemoteTargets(StoredTargets):
    """The targets of a remote store: its `rules` and `patterns`; `Actions.set_targets` changes them."""

    def __init__(self, context: StoreContext, connection: Connection) -> None:
        super().__init__(context)
        self._connection = connection

    def rules(self, *, tr: ReadTransaction | None = None) -> TargetRules:
        """Return all patterns and the defaults, which tell the targets of any queue."""
        if tr is not None:
            refuse()
        return rules_of(self._connection.get("targets"))
