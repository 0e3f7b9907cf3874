"""Addresses of the pages about people."""

from django.urls import path

from pqadmin.people import token_views, views

app_name = "people"
urlpatterns = [
    path("people/", views.people, name="people"),
    path("people/new/", views.CreateView.as_view(), name="new"),
    path("people/<int:key>/", views.person, name="person"),
    path("people/<int:key>/role/", views.RoleView.as_view(), name="role"),
    path("people/<int:key>/grants/", views.AddGrantView.as_view(), name="add-grant"),
    path("people/<int:key>/grants/<int:grant>/remove/", views.RemoveGrantView.as_view(), name="remove-grant"),
    path("people/<int:key>/active/", views.ActivateView.as_view(), name="active"),
    path("people/<int:key>/password/", views.PasswordView.as_view(), name="password"),
    path("tokens/", token_views.token_list, name="tokens"),
    path("tokens/new/", token_views.CreateTokenView.as_view(), name="new-token"),
    path("tokens/<int:key>/revoke/", token_views.RevokeTokenView.as_view(), name="revoke-token"),
    path("accounts/me/", views.me, name="me"),
]
