"""The site's addresses; every view but those with `login_not_required` needs a login."""

from importlib.util import find_spec

from django.contrib import admin
from django.urls import include, path

from pqadmin.live.words_view import words_file

urlpatterns = [
    path("", include("pqadmin.dashboard.urls")),
    path("", include("pqadmin.wall.urls")),
    path("", include("pqadmin.people.urls")),
    path("accounts/", include("pqadmin.accounts.urls")),
    path("admin/", admin.site.urls),
    path("words/<str:language>/<str:mark>.js", words_file, name="words"),
]

if find_spec("pqadmin.styleguide") is not None:  # not in a wheel
    from pqadmin.styleguide.views import styleguide

    urlpatterns.append(path("styleguide/", styleguide, name="styleguide"))

handler400 = "pqadmin.pages.error_pages.bad_request"
handler403 = "pqadmin.pages.error_pages.permission_denied"
handler404 = "pqadmin.pages.error_pages.page_not_found"
handler500 = "pqadmin.pages.error_pages.server_error"
