"""Addresses of the pages about people."""

from django.urls import path

from pqadmin.people import views

app_name = "people"
urlpatterns = [
    path("people/", views.people, name="people"),
    path("people/new/", views.create, name="new"),
    path("people/<int:key>/", views.person, name="person"),
    path("people/<int:key>/role/", views.role, name="role"),
    path("people/<int:key>/grants/", views.add_grant, name="add-grant"),
    path("people/<int:key>/grants/<int:grant>/remove/", views.remove_grant, name="remove-grant"),
    path("people/<int:key>/active/", views.activate, name="active"),
    path("people/<int:key>/password/", views.password, name="password"),
    path("accounts/me/", views.me, name="me"),
]
