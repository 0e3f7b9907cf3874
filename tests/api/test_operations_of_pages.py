"""What a page does, a program does too: every page has an operation of the API, or a reason to have none.

A page that is added without either fails here.
"""

import pytest

from pqadmin.api.application import api
from pqadmin.api.docs import openapi
from tests.accounts.matrix import PAGES

#: The operations that do what a page does.
OPERATIONS = {
    "people:me": "store",
    "people:people": "list_people",
    "people:new": "create_person",
    "people:person": "get_person",
    "people:role": "change_role",
    "people:add-grant": "add_grant",
    "people:remove-grant": "remove_grant",
    "people:active": "deactivate_person reactivate_person",
    "people:password": "reset_password",
    "people:tokens": "list_tokens",
    "people:new-token": "create_token",
    "people:revoke-token": "revoke_token",
    "dashboard:overview": "list_queues events",
    "dashboard:pause-group": "pause_group",
    "dashboard:resume-group": "resume_group",
    "dashboard:start-sample": "start_sample_load",
    "dashboard:stop-sample": "stop_sample_load",
    "dashboard:queue": "get_queue list_items consumers health dead_errors",
    "dashboard:item": "get_item",
    "dashboard:download": "get_item",
    "dashboard:search": "search",
    "dashboard:bulk": "begin_bulk preview_bulk",
    "dashboard:jobs": "list_jobs",
    "dashboard:job": "get_job",
    "dashboard:cancel-job": "cancel_job",
    "dashboard:resume-job": "resume_job",
    "dashboard:undo-job": "undo",
    "dashboard:reveal": "reveal_item",
    "dashboard:charts": "history_of_all",
    "dashboard:charts-data": "history_of_all",
    "dashboard:targets": "list_targets",
    "dashboard:queue-targets": "queue_targets",
    "dashboard:queue-jobs": "list_jobs",
    "dashboard:new-targets": "set_targets",
    "dashboard:edit-targets": "set_targets",
    "dashboard:remove-targets": "remove_targets",
    "dashboard:history": "history",
    "dashboard:history-data": "history",
    "dashboard:audit": "audit",
    "dashboard:audit-export": "audit",
    "dashboard:export": "export_items",
    "dashboard:trash": "trash",
    "dashboard:new-queue": "create_queue",
    "dashboard:attach": "attach_queue",
    "dashboard:purge": "purge_queue",
    "dashboard:settings": "configure_queue",
    "dashboard:detach": "detach_queue",
    "dashboard:act": "act_on_items delete_item move_item promote_item retry_item release_item",
    "dashboard:edit": "change_item",
    "dashboard:push": "push keep_template list_templates get_template",
    "dashboard:push-many": "push_chunk",
    "dashboard:forget-template": "forget_template",
    "dashboard:pop": "pop_into_trash",
    "dashboard:put-back": "undo",
    "dashboard:pause": "pause_queue",
    "dashboard:resume": "resume_queue",
    "dashboard:rename": "rename_queue",
    "dashboard:delete": "delete_queue",
    "dashboard:restore": "undo restore_queue",
    "wall:boards": "list_boards",
    "wall:make": "make_board",
    "wall:change": "change_board get_board",
    "wall:remove": "remove_board",
    "wall:mint": "mint_link",
    "wall:revoke": "revoke_link",
}
#: Why pages have none.
REASONS = {
    "the person signs in or out, or types a password": "accounts:login accounts:logout accounts:password",
    "the window for writes belongs to one browser": "dashboard:arm dashboard:disarm",
    "it is how a reader's own pages look": "dashboard:favorite dashboard:fold dashboard:theme dashboard:rows "
    "dashboard:language dashboard:time-zone",
    "it is a part of pages, for their scripts": "words dashboard:palette dashboard:keys dashboard:list-age "
    "dashboard:check-value wall:preview styleguide",
    "a screen shows it": "wall:wall wall:enter",
}
WITHOUT = {page for pages in REASONS.values() for page in pages.split()}
METHODS = {each["operationId"]: method for _, method, each in openapi.operations(openapi.document(api))}


def test_every_page_has_an_operation_or_a_reason_to_have_none() -> None:
    assert PAGES.keys() == OPERATIONS.keys() | WITHOUT
    assert not OPERATIONS.keys() & WITHOUT


@pytest.mark.parametrize("page", OPERATIONS)
def test_what_a_page_writes_an_operation_writes(page: str) -> None:
    methods = [METHODS[name] for name in OPERATIONS[page].split()]
    assert PAGES[page].method != "POST" or set(methods) - {"get"}
