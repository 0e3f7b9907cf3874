"""Actions: what a person does to queues and items, each with its trash and audit records in one transaction."""

from queues.actions import bulk, item_actions, preview, queue_actions, take, targets
from queues.actions import purge as purges
from queues.actions import push as pushes
from queues.actions import undo as undoing
from queues.actions.audited_action import Frame


class Actions(Frame):
    """The actions of one person, by one way (web, api, cli). Use it in one thread.

    Each action is one transaction, but for `begin_push`, `run_bulk` and purges of attached queues. What an action
    removes or changes is undone by `undo`.

    Options of actions on several items are `reason`; `expect_id`, the id of the queue that is meant; `expect`, the
    items' etags by their ids, as `pick` returned them: `ItemChanged` is raised when one has changed; and
    `skip_missing`, which leaves out items that are gone or in another state. Options of pushes are `delay` or `due`,
    `expect_id` and `reason`.
    """

    create_queue = queue_actions.create_queue
    attach = queue_actions.attach
    detach = queue_actions.detach
    pause = queue_actions.pause
    resume = queue_actions.resume
    rename_queue = queue_actions.rename_queue
    configure = queue_actions.configure
    delete_queue = queue_actions.delete_queue
    set_targets = targets.set_targets
    remove_targets = targets.remove_targets
    set_default_targets = targets.set_default_targets
    purge = purges.purge
    purge_attached = purges.purge_attached

    push = pushes.push
    push_many = pushes.push_many
    push_undoably = pushes.push_undoably
    pop = take.pop
    pop_many = take.pop_many
    lease = take.lease

    pick = preview.pick
    preview_move = preview.preview_move
    preview_reprioritize = preview.preview_reprioritize
    reveal = item_actions.reveal
    delete_item = item_actions.delete_item
    delete_items = item_actions.delete_items
    move_items = item_actions.move_items
    reprioritize = item_actions.reprioritize
    edit_item = item_actions.edit_item
    promote = item_actions.promote
    reschedule = item_actions.reschedule
    delay = item_actions.delay
    retry_dead = item_actions.retry_dead
    release = item_actions.release
    ack = item_actions.ack

    begin_bulk = bulk.begin_bulk
    begin_push = pushes.begin_push
    run_bulk = bulk.run_bulk
    cancel_bulk = bulk.cancel_bulk
    resume_bulk = bulk.resume_bulk
    job = bulk.read
    jobs = bulk.newest
    job_page = bulk.page
    running_jobs = bulk.running
    changed_by = bulk.changed_by
    lease_released_by = bulk.lease_released_by

    undo = undoing.undo
