"""Addresses of the pages. A queue's name holds no slash, so acts and items lie below its page."""

from django.urls import path

from pqadmin.dashboard.audit import views as audit
from pqadmin.dashboard.history import views as history
from pqadmin.dashboard.items import act, bulk, edit, export, pop
from pqadmin.dashboard.items import views as item
from pqadmin.dashboard.jobs import views as jobs
from pqadmin.dashboard.overview import favorites, sample_load
from pqadmin.dashboard.overview import views as overview
from pqadmin.dashboard.palette import views as palette
from pqadmin.dashboard.push import checks, many
from pqadmin.dashboard.push import views as push
from pqadmin.dashboard.queue import acts as queue_acts
from pqadmin.dashboard.queue import attached, purge, settings
from pqadmin.dashboard.queue import views as queue
from pqadmin.dashboard.trash import views as trash
from pqadmin.pages import arm, language, theme, time_zone

app_name = "dashboard"
urlpatterns = [
    path("", overview.overview, name="overview"),
    path("theme/", theme.choose, name="theme"),
    path("favorite/", favorites.choose, name="favorite"),
    path("language/", language.choose, name="language"),
    path("time-zone/", time_zone.choose, name="time-zone"),
    path("palette/", palette.palette, name="palette"),
    path("keys/", palette.keys, name="keys"),
    path("sample-load/start/", sample_load.start, name="start-sample"),
    path("sample-load/stop/", sample_load.stop, name="stop-sample"),
    # A queue may be called “new”: then its own page stands at that address and the form only here.
    path("arm/", arm.arm, name="arm"),
    path("disarm/", arm.disarm, name="disarm"),
    path("new/", queue_acts.create, name="new-queue"),
    path("attach/", attached.attach, name="attach"),
    path("queues/<str:name>/", queue.queue, name="queue"),
    path("queues/<str:name>/push/", push.push, name="push"),
    path("queues/<str:name>/push/many/", many.push_many, name="push-many"),
    path("queues/<str:name>/push/templates/<str:number>/delete/", push.forget_template, name="forget-template"),
    path("queues/<str:name>/check/", checks.check_value, name="check-value"),
    path("queues/<str:name>/pop/", pop.pop, name="pop"),
    path("queues/<str:name>/act/", act.act, name="act"),
    path("queues/<str:name>/put-back/", pop.put_back, name="put-back"),
    path("queues/<str:name>/pause/", queue_acts.pause, name="pause"),
    path("queues/<str:name>/resume/", queue_acts.resume, name="resume"),
    path("queues/<str:name>/rename/", queue_acts.rename, name="rename"),
    path("queues/<str:name>/delete/", queue_acts.delete, name="delete"),
    path("queues/<str:name>/purge/", purge.purge, name="purge"),
    path("queues/<str:name>/export/", export.export, name="export"),
    path("queues/<str:name>/settings/", settings.settings, name="settings"),
    path("queues/<str:name>/detach/", attached.detach, name="detach"),
    path("queues/<str:name>/history/", history.history, name="history"),
    path("queues/<str:name>/history/data/", history.history_data, name="history-data"),
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
    path("audit/export/", audit.audit_export, name="audit-export"),
    path("trash/", trash.trash, name="trash"),
    path("trash/<str:trash_id>/restore/", trash.restore, name="restore"),
]
