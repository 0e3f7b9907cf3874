"""The account's own pages."""

from django.contrib.auth.views import LogoutView
from django.urls import path

from pqadmin.accounts.access import open_without_role
from pqadmin.accounts.views import LoginView, PasswordView

app_name = "accounts"
urlpatterns = [
    path("login/", LoginView.as_view(), name="login"),
    path("logout/", open_without_role(LogoutView.as_view()), name="logout"),
    path("password/", open_without_role(PasswordView.as_view()), name="password"),
]
