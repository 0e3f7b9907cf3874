"""Django's ASGI handler, with all middleware and the view in one step on the request's thread."""

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIHandler, ASGIRequest
from django.http.response import HttpResponseBase


class SyncHandler(ASGIHandler):
    """Runs the whole sync stack at once: Django's own hops between threads for every middleware."""

    def load_middleware(self, is_async: bool = False) -> None:
        """Load the middleware in its sync form."""
        super().load_middleware(is_async=False)

    async def run_get_response(self, request: ASGIRequest) -> HttpResponseBase:
        """Return the response to one request."""
        response = await sync_to_async(self.get_response, thread_sensitive=True)(request)
        response._handler_class = self.__class__  # type: ignore[attr-defined]  # noqa: SLF001
        return response
