"""The reader's language: Django's own cookie and view, open without a login."""

from django.contrib.auth.decorators import login_not_required
from django.views.decorators.http import require_POST
from django.views.i18n import set_language

#: Remember the language and go back to the page it was chosen on; without a choice the browser's counts.
choose = login_not_required(require_POST(set_language))
