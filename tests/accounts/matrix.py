"""Access rights: one row for every URL pattern and every consumer of the site.

`test_matrix` compares this table with the URLconf and the websocket routing: a view or consumer without a row
fails, and so does a row without a view.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from pqadmin.accounts.roles import Role


class Open(Enum):
    """The people that may use a view."""

    ALL = ()
    PEOPLE = (Role.NONE, Role.VIEWER, Role.OPERATOR, Role.ADMIN)
    VIEWERS = (Role.VIEWER, Role.OPERATOR, Role.ADMIN)
    OPERATORS = (Role.OPERATOR, Role.ADMIN)
    ADMINS = (Role.ADMIN,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A view's address, the request that is made, to which people it is open and what they get."""

    open: Open
    method: str = "GET"
    arguments: Mapping[str, str] = field(default_factory=dict)
    data: Mapping[str, str] = field(default_factory=dict)
    status: int = 200
    #: It takes the right on all queues.
    everywhere: bool = False


QUEUE = {"name": "jobs"}
ITEM = {"name": "jobs", "item_id": "0" * 40}
PAGES = {
    "words": Row(open=Open.ALL, arguments={"language": "en", "mark": "0" * 12}),
    "accounts:login": Row(open=Open.ALL, method="POST", status=422),
    "accounts:logout": Row(open=Open.PEOPLE, method="POST", status=302),
    "accounts:password": Row(open=Open.PEOPLE),
    "people:me": Row(open=Open.PEOPLE),
    "people:people": Row(open=Open.ADMINS),
    "people:new": Row(open=Open.ADMINS, method="POST", status=422),
    "people:person": Row(open=Open.ADMINS, arguments={"key": "0"}, status=404),
    "people:role": Row(open=Open.ADMINS, method="POST", arguments={"key": "0"}, status=404),
    "people:add-grant": Row(open=Open.ADMINS, method="POST", arguments={"key": "0"}, status=404),
    "people:remove-grant": Row(open=Open.ADMINS, method="POST", arguments={"key": "0", "grant": "1"}, status=404),
    "people:active": Row(open=Open.ADMINS, method="POST", arguments={"key": "0"}, status=404),
    "people:password": Row(open=Open.ADMINS, method="POST", arguments={"key": "0"}, status=404),
    "people:tokens": Row(open=Open.VIEWERS),
    "people:new-token": Row(open=Open.VIEWERS, method="POST", status=422),
    "people:revoke-token": Row(open=Open.VIEWERS, method="POST", arguments={"key": "0"}, status=303),
    "dashboard:arm": Row(open=Open.OPERATORS, method="POST", status=303),
    "dashboard:disarm": Row(open=Open.OPERATORS, method="POST", status=303),
    "dashboard:overview": Row(open=Open.VIEWERS),
    "dashboard:favorite": Row(open=Open.VIEWERS, method="POST", data={"on": "1"}, status=303),
    "dashboard:pause-group": Row(open=Open.OPERATORS, method="POST", status=404),
    "dashboard:resume-group": Row(open=Open.OPERATORS, method="POST", status=404),
    "dashboard:fold": Row(open=Open.VIEWERS, method="POST", data={"shut": "a:"}, status=303),
    "dashboard:theme": Row(open=Open.PEOPLE, method="POST", data={"theme": "dark"}, status=303),
    "dashboard:rows": Row(open=Open.PEOPLE, method="POST", data={"rows": "dark"}, status=303),
    "dashboard:language": Row(open=Open.ALL, method="POST", data={"language": "en"}, status=302),
    "dashboard:time-zone": Row(open=Open.PEOPLE, method="POST", data={"zone": "Asia/Shanghai"}, status=303),
    "dashboard:start-sample": Row(open=Open.OPERATORS, method="POST", status=303),
    "dashboard:stop-sample": Row(open=Open.OPERATORS, method="POST", status=303),
    "dashboard:palette": Row(open=Open.VIEWERS),
    "dashboard:keys": Row(open=Open.VIEWERS),
    "dashboard:queue": Row(open=Open.VIEWERS, arguments=QUEUE),
    "dashboard:item": Row(open=Open.VIEWERS, arguments=ITEM, status=404),
    "dashboard:download": Row(open=Open.VIEWERS, arguments=ITEM, status=404),
    "dashboard:search": Row(open=Open.VIEWERS),
    "dashboard:bulk": Row(open=Open.OPERATORS, arguments=QUEUE),
    "dashboard:jobs": Row(open=Open.VIEWERS),
    "dashboard:job": Row(open=Open.VIEWERS, arguments={"job_id": "0" * 40}, status=404),
    "dashboard:cancel-job": Row(open=Open.OPERATORS, method="POST", arguments={"job_id": "0" * 40}, status=303),
    "dashboard:resume-job": Row(open=Open.OPERATORS, method="POST", arguments={"job_id": "0" * 40}, status=303),
    "dashboard:undo-job": Row(open=Open.OPERATORS, method="POST", arguments={"job_id": "0" * 40}, status=303),
    "dashboard:reveal": Row(open=Open.OPERATORS, method="POST", arguments=ITEM, status=404),
    "dashboard:list-age": Row(open=Open.VIEWERS, arguments=QUEUE),
    "dashboard:charts": Row(open=Open.VIEWERS),
    "dashboard:targets": Row(open=Open.VIEWERS),
    "dashboard:queue-targets": Row(open=Open.VIEWERS, arguments=QUEUE, status=302),
    "dashboard:queue-jobs": Row(open=Open.VIEWERS, arguments=QUEUE, status=302),
    "dashboard:new-targets": Row(open=Open.OPERATORS, everywhere=True),
    "dashboard:edit-targets": Row(open=Open.OPERATORS, arguments={"glob": "orders:*"}, status=404, everywhere=True),
    "dashboard:remove-targets": Row(
        open=Open.OPERATORS, method="POST", arguments={"glob": "orders:*"}, status=303, everywhere=True
    ),
    "dashboard:charts-data": Row(open=Open.VIEWERS),
    "dashboard:history": Row(open=Open.VIEWERS, arguments=QUEUE),
    "dashboard:history-data": Row(open=Open.VIEWERS, arguments=QUEUE),
    "dashboard:audit": Row(open=Open.VIEWERS),
    "dashboard:audit-export": Row(open=Open.VIEWERS),
    "dashboard:export": Row(open=Open.VIEWERS, arguments=QUEUE),
    "dashboard:trash": Row(open=Open.VIEWERS),
    "dashboard:new-queue": Row(open=Open.OPERATORS),
    "dashboard:attach": Row(open=Open.ADMINS),
    "dashboard:purge": Row(open=Open.OPERATORS, method="POST", arguments=QUEUE, status=422),
    "dashboard:settings": Row(open=Open.OPERATORS, method="POST", arguments=QUEUE, status=422),
    "dashboard:detach": Row(open=Open.OPERATORS, method="POST", arguments=QUEUE, status=404),
    "dashboard:act": Row(open=Open.OPERATORS, method="POST", arguments=QUEUE, status=303),
    "dashboard:edit": Row(open=Open.OPERATORS, arguments=ITEM, status=404),
    "dashboard:push": Row(open=Open.OPERATORS, method="POST", arguments=QUEUE, status=422),
    "dashboard:push-many": Row(open=Open.OPERATORS, method="POST", arguments=QUEUE, status=422),
    "dashboard:forget-template": Row(
        open=Open.OPERATORS, method="POST", arguments={**QUEUE, "number": "1"}, status=303
    ),
    "dashboard:check-value": Row(open=Open.OPERATORS, method="POST", arguments=QUEUE),
    "dashboard:pop": Row(open=Open.OPERATORS, method="POST", arguments=QUEUE, status=409),
    "dashboard:put-back": Row(open=Open.OPERATORS, method="POST", arguments=QUEUE, status=303),
    "dashboard:pause": Row(open=Open.OPERATORS, method="POST", arguments=QUEUE, status=422),
    "dashboard:resume": Row(open=Open.OPERATORS, method="POST", arguments=QUEUE, status=409),
    "dashboard:rename": Row(open=Open.OPERATORS, method="POST", arguments=QUEUE, status=422),
    "dashboard:delete": Row(open=Open.OPERATORS, method="POST", arguments=QUEUE, status=422),
    "dashboard:restore": Row(open=Open.OPERATORS, method="POST", arguments={"trash_id": "0" * 40}, status=303),
    "styleguide": Row(open=Open.ADMINS),
    "wall:wall": Row(open=Open.VIEWERS, arguments={"slug": "hall"}, status=404),
    "wall:enter": Row(open=Open.ALL),
    "wall:boards": Row(open=Open.VIEWERS),
    "wall:make": Row(open=Open.ADMINS),
    "wall:preview": Row(open=Open.ADMINS),
    "wall:change": Row(open=Open.ADMINS, arguments={"slug": "hall"}, status=404),
    "wall:remove": Row(open=Open.ADMINS, arguments={"slug": "hall"}, status=404),
    "wall:mint": Row(open=Open.ADMINS, method="POST", arguments={"slug": "hall"}, status=404),
    "wall:revoke": Row(open=Open.ADMINS, method="POST", arguments={"slug": "hall", "key": "1"}, status=404),
}

# Consumers by their route's name: the people that are let in.
SOCKETS = {
    "live": Open.VIEWERS,
    "wall-live": Open.VIEWERS,  # and a screen with its link's cookie: see tests/wall
}
