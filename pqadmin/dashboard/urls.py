"""Addresses of the pages. A queue's name holds no slash, so acts and items lie below its page."""

from django.urls import path

from pqadmin.dashboard.audit import views as audit
from pqadmin.dashboard.history import overall_views as overall
from pqadmin.dashboard.history import views as history
from pqadmin.dashboard.items import action_views as items
from pqadmin.dashboard.items import bulk, edit, export, list_age, pop
from pqadmin.dashboard.items import views as item
from pqadmin.dashboard.jobs import views as jobs
from pqadmin.dashboard.overview import favorites, groups, sample_load
from pqadmin.dashboard.overview import views as overview
from pqadmin.dashboard.palette import views as palette
from pqadmin.dashboard.push import many
from pqadmin.dashboard.push import views as push
from pqadmin.dashboard.queue import actions as queue_actions
from pqadmin.dashboard.queue import attached, purge, settings
from pqadmin.dashboard.queue import views as queue
from pqadmin.dashboard.search import views as search
from pqadmin.dashboard.targets import views as targets
from pqadmin.dashboard.trash import views as trash
from pqadmin.pages import arming_views, reader_preferences

app_name = "dashboard"
urlpatterns = [
    path("", overview.overview, name="overview"),
    path("theme/", reader_preferences.choose_theme, name="theme"),
    path("rows/", reader_preferences.choose_rows, name="rows"),
    path("favorite/", favorites.choose, name="favorite"),
    path("groups/pause/", groups.PauseGroupView.as_view(), name="pause-group"),
    path("groups/resume/", groups.ResumeGroupView.as_view(), name="resume-group"),
    path("fold/", favorites.fold, name="fold"),
    path("language/", reader_preferences.choose_language, name="language"),
    path("time-zone/", reader_preferences.choose_time_zone, name="time-zone"),
    path("palette/", palette.palette, name="palette"),
    path("search/", search.search, name="search"),
    path("keys/", palette.keys, name="keys"),
    path("sample-load/start/", sample_load.StartView.as_view(), name="start-sample"),
    path("sample-load/stop/", sample_load.stop_view, name="stop-sample"),
    # A queue may be called “new”: then its own page has that address and the form only this one.
    path("arm/", arming_views.arm, name="arm"),
    path("charts/", overall.all_charts, name="charts"),
    path("charts/data/", overall.all_charts_data, name="charts-data"),
    path("disarm/", arming_views.disarm, name="disarm"),
    path("new/", queue_actions.CreateView.as_view(), name="new-queue"),
    path("attach/", attached.AttachView.as_view(), name="attach"),
    path("queues/<str:name>/", queue.queue, name="queue"),
    path("queues/<str:name>/push/", push.PushView.as_view(), name="push"),
    path("queues/<str:name>/push/many/", many.push_many, name="push-many"),
    path("queues/<str:name>/push/templates/<str:number>/delete/", push.forget_template, name="forget-template"),
    path("queues/<str:name>/check/", push.check_value, name="check-value"),
    path("queues/<str:name>/pop/", pop.PopView.as_view(), name="pop"),
    path("queues/<str:name>/act/", items.ItemsActionView.as_view(), name="act"),
    path("queues/<str:name>/put-back/", pop.PutBackView.as_view(), name="put-back"),
    path("queues/<str:name>/pause/", queue_actions.PauseView.as_view(), name="pause"),
    path("queues/<str:name>/resume/", queue_actions.ResumeView.as_view(), name="resume"),
    path("queues/<str:name>/rename/", queue_actions.RenameView.as_view(), name="rename"),
    path("queues/<str:name>/delete/", queue_actions.DeleteView.as_view(), name="delete"),
    path("queues/<str:name>/purge/", purge.PurgeView.as_view(), name="purge"),
    path("queues/<str:name>/age/", list_age.age, name="list-age"),
    path("queues/<str:name>/export/", export.export, name="export"),
    path("queues/<str:name>/settings/", settings.SettingsView.as_view(), name="settings"),
    path("queues/<str:name>/detach/", attached.DetachView.as_view(), name="detach"),
    path("queues/<str:name>/history/", history.history, name="history"),
    path("queues/<str:name>/history/data/", history.history_data, name="history-data"),
    path("queues/<str:name>/items/<str:item_id>/", item.item, name="item"),
    path("queues/<str:name>/items/<str:item_id>/edit/", edit.EditView.as_view(), name="edit"),
    path("queues/<str:name>/items/<str:item_id>/download/", item.download, name="download"),
    path("queues/<str:name>/bulk/", bulk.BulkView.as_view(), name="bulk"),
    path("queues/<str:name>/targets/", targets.queue_targets, name="queue-targets"),
    path("queues/<str:name>/jobs/", queue.queue_jobs, name="queue-jobs"),
    path("targets/", targets.targets, name="targets"),
    path("targets/new/", targets.PatternView.as_view(), name="new-targets"),
    path("targets/of/<str:glob>/", targets.PatternView.as_view(), name="edit-targets"),
    path("targets/of/<str:glob>/remove/", targets.RemoveView.as_view(), name="remove-targets"),
    path("jobs/", jobs.jobs, name="jobs"),
    path("jobs/<str:job_id>/", jobs.job, name="job"),
    path("jobs/<str:job_id>/cancel/", jobs.CancelView.as_view(), name="cancel-job"),
    path("jobs/<str:job_id>/resume/", jobs.ResumeView.as_view(), name="resume-job"),
    path("jobs/<str:job_id>/undo/", jobs.UndoView.as_view(), name="undo-job"),
    path("queues/<str:name>/items/<str:item_id>/reveal/", item.RevealView.as_view(), name="reveal"),
    path("audit/", audit.audit, name="audit"),
    path("audit/export/", audit.audit_export, name="audit-export"),
    path("trash/", trash.trash, name="trash"),
    path("trash/<str:trash_id>/restore/", trash.RestoreView.as_view(), name="restore"),
]
