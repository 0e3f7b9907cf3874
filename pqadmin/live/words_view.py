"""The words for scripts as a file. Browsers keep it for a year, as its address names its content."""

import hashlib
import json
from functools import lru_cache

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.cache import patch_cache_control
from django.utils.translation import override
from django.views.decorators.http import require_safe

from pqadmin.live.words import words

#: Seconds that a browser may keep a file that its address names by content.
YEAR = 365 * 24 * 3600


@login_not_required
@require_safe
def words_file(request: HttpRequest, language: str, mark: str) -> HttpResponse:
    """Answer with the words of one language; of another release's mark, with those of now, not to be kept."""
    if language not in dict(settings.LANGUAGES):
        raise Http404
    script, own = _script(language)
    answer = HttpResponse(script, content_type="text/javascript; charset=utf-8")
    answer.headers["Content-Language"] = language  # whatever the reader's is
    if mark == own:
        patch_cache_control(answer, public=True, max_age=YEAR, immutable=True)
    return answer


def address(language: str) -> str:
    """Return where the words of a language are."""
    return reverse("words", args=[language, _script(language)[1]])


@lru_cache(maxsize=16)
def _script(language: str) -> tuple[str, str]:
    """Return what sets the words, and the mark of it."""
    with override(language):
        script = f"globalThis.pqadminWords = {json.dumps(words(), ensure_ascii=False)};\n"
    return script, hashlib.sha256(script.encode()).hexdigest()[:12]
