"""The site's addresses; everything needs a login but what says `login_not_required`."""

from django.contrib import admin
from django.urls import include, path

from pqadmin.live.words_view import words_file
from pqadmin.styleguide.views import styleguide

urlpatterns = [
    path("", include("pqadmin.dashboard.urls")),
    path("", include("pqadmin.wall.urls")),
    path("", include("pqadmin.people.urls")),
    path("accounts/", include("pqadmin.accounts.urls")),
    path("admin/", admin.site.urls),
    path("words/<str:language>/<str:mark>.js", words_file, name="words"),
    path("styleguide/", styleguide, name="styleguide"),
]

handler400 = "pqadmin.pages.error_pages.bad_request"
handler403 = "pqadmin.pages.error_pages.permission_denied"
handler404 = "pqadmin.pages.error_pages.page_not_found"
handler500 = "pqadmin.pages.error_pages.server_error"
