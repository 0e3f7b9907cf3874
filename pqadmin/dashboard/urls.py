"""Addresses of the pages. A queue's name holds no slash, so acts and items lie below its page."""

from django.urls import path

from pqadmin.dashboard import theme
from pqadmin.dashboard.views import (
    acts,
    attached,
    audit,
    bulk,
    checks,
    edit,
    item,
    item_acts,
    jobs,
    overview,
    purge,
    push,
    queue,
    queue_acts,
    settings,
    styleguide,
    trash,
)

app_name = "dashboard"
urlpatterns = [
    path("", overview.overview, name="overview"),
    path("theme/", theme.choose, name="theme"),
    # A queue may be called “new”: then its own page stands at that address and the form only here.
    path("new/", queue_acts.create, name="new-queue"),
    path("attach/", attached.attach, name="attach"),
    path("queues/<str:name>/", queue.queue, name="queue"),
    path("queues/<str:name>/push/", push.push, name="push"),
    path("queues/<str:name>/push/many/", push.push_many, name="push-many"),
    path("queues/<str:name>/push/templates/<str:number>/delete/", push.forget_template, name="forget-template"),
    path("queues/<str:name>/check/", checks.check_value, name="check-value"),
    path("queues/<str:name>/pop/", acts.pop, name="pop"),
    path("queues/<str:name>/act/", item_acts.act, name="act"),
    path("queues/<str:name>/put-back/", acts.put_back, name="put-back"),
    path("queues/<str:name>/pause/", queue_acts.pause, name="pause"),
    path("queues/<str:name>/resume/", queue_acts.resume, name="resume"),
    path("queues/<str:name>/rename/", queue_acts.rename, name="rename"),
    path("queues/<str:name>/delete/", queue_acts.delete, name="delete"),
    path("queues/<str:name>/purge/", purge.purge, name="purge"),
    path("queues/<str:name>/settings/", settings.settings, name="settings"),
    path("queues/<str:name>/detach/", attached.detach, name="detach"),
    path("queues/<str:name>/items/<str:item_id>/", item.item, name="item"),
    path("queues/<str:name>/items/<str:item_id>/edit/", edit.edit, name="edit"),
    path("queues/<str:name>/items/<str:item_id>/download/", item.download, name="download"),
    path("queues/<str:name>/bulk/", bulk.bulk, name="bulk"),
    path("jobs/", jobs.jobs, name="jobs"),
    path("jobs/<str:job_id>/", jobs.job, name="job"),
    path("jobs/<str:job_id>/cancel/", jobs.cancel, name="cancel-job"),
    path("jobs/<str:job_id>/resume/", jobs.resume, name="resume-job"),
    path("jobs/<str:job_id>/undo/", jobs.undo, name="undo-job"),
    path("queues/<str:name>/items/<str:item_id>/reveal/", item.reveal, name="reveal"),
    path("audit/", audit.audit, name="audit"),
    path("trash/", trash.trash, name="trash"),
    path("trash/<str:trash_id>/restore/", trash.restore, name="restore"),
    path("styleguide/", styleguide.styleguide, name="styleguide"),
]
