"""Actions: what a person does to queues and items, each with its trash and audit records in one transaction."""

from queues.actions import bulk, items, preview, queue, take, targets
from queues.actions import purge as purges
from queues.actions import push as pushes
from queues.actions import undo as undoing
from queues.actions.perform import Frame


class Actions(Frame):
    """The actions of one person, by one way (web, api, cli). Use it in one thread.

    Each action is one transaction, but for `begin_push`, `run_bulk` and purges of attached queues. What an action
    removes or changes is undone by `undo`.

    Options of actions on several items are `reason`; `expect_id`, the id of the queue that is meant; `expect`, the
    items' etags by their ids, as `pick` returned them: `ItemChanged` is raised when one has changed; and
    `skip_missing`, which leaves out items that are gone or in another state. Options of pushes are `delay` or `due`,
    `expect_id` and `reason`.
    """

    create_queue = queue.create_queue
    attach = queue.attach
    detach = queue.detach
    pause = queue.pause
    resume = queue.resume
    rename_queue = queue.rename_queue
    configure = queue.configure
    delete_queue = queue.delete_queue
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
    reveal = items.reveal
    delete_item = items.delete_item
    delete_items = items.delete_items
    move_items = items.move_items
    reprioritize = items.reprioritize
    edit_item = items.edit_item
    promote = items.promote
    reschedule = items.reschedule
    delay = items.delay
    retry_dead = items.retry_dead
    release = items.release
    ack = items.ack

    begin_bulk = bulk.begin_bulk
    begin_push = pushes.begin_push
    run_bulk = bulk.run_bulk
    cancel_bulk = bulk.cancel_bulk
    resume_bulk = bulk.resume_bulk
    job = bulk.read
    jobs = bulk.newest
    job_page = bulk.page
    running_jobs = bulk.running

    undo = undoing.undo
