"""Every component with hostile and extreme data, in each state. For admins."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from pqadmin.accounts.roles import Right, require


@require(Right.ADMIN)
def styleguide(request: HttpRequest) -> HttpResponse:
    """Show everything."""
    return render(request, "dashboard/styleguide.html", {})
