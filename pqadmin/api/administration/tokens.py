"""Tokens: list, create and revoke them."""

from typing import Annotated

from django.contrib.auth.models import User
from django.http import HttpResponse
from ninja import Query, Router
from pydantic import Field, StrictInt, StrictStr

from pqadmin import token_lifecycle
from pqadmin.accounts.caller import Verb
from pqadmin.accounts.models import Token
from pqadmin.accounts.rights import Right
from pqadmin.api.administration import schemas
from pqadmin.api.answers import answer, caller_in, change
from pqadmin.api.authorization import administer, allow, refuse_tokens
from pqadmin.api.bodies import Body
from pqadmin.api.parameters import Containing, Limit, RowId
from pqadmin.api.problems import Problem
from pqadmin.api.request import ApiRequest
from pqadmin.api.threads import in_thread
from pqadmin.files.shapes import Shape
from pqadmin.site_audit import Author
from pqadmin.store import get_store

router = Router(tags=["Administration"])


class NewToken(Body):
    """A token to create."""

    name: StrictStr = Field(description="What the audit calls the program: token:NAME.")
    verbs: list[Annotated[Verb, Field(strict=False)]] = Field(
        max_length=len(Verb), description="What it may do; `administer` takes an admin, and all queues."
    )
    queues: list[StrictStr] = Field(
        max_length=token_lifecycle.MOST_GLOBS, description="Names of queues, or patterns such as `orders:*`."
    )
    days: StrictInt | None = Field(
        None, ge=1, le=token_lifecycle.MOST_DAYS, description="Days until it expires; null: it does not."
    )
    rate: StrictInt | None = Field(
        None, ge=1, le=token_lifecycle.MOST_RATE, description="Requests a second; null: no limit of its own."
    )


@router.get("/tokens", operation_id="list_tokens", summary="List tokens", response=schemas.Tokens)
@in_thread
def list_tokens(
    request: ApiRequest,
    q: Containing = "",
    revoked: Annotated[bool, Query(description="Those that were revoked, the last first, on one page.")] = False,
    after: Annotated[
        str, Query(max_length=100, description="Only names behind this: the `next` of the answer before.")
    ] = "",
    limit: Limit = 50,
) -> HttpResponse:
    """Return tokens that are not revoked, by name: to a person's session one's own, to an admin's those of all people.

    A token sees them with the verb `administer`.
    """
    owner_id = _owner(request)
    if revoked:
        shown, following = token_lifecycle.revoked(q, owner_id, limit=limit), None
    else:
        shown, following = token_lifecycle.page(q, owner_id, after=after, limit=limit)
    return answer({"tokens": [token_lifecycle.token_shape(token) for token in shown], "next": following})


@router.post("/tokens", operation_id="create_token", summary="Create a token", response={201: schemas.TokenWithSecret})
@in_thread
def create_token(request: ApiRequest, body: NewToken) -> HttpResponse:
    """Create a token of one's own. This takes a person's session: a token cannot."""
    refuse_tokens(request, "Only a person's session may create a token; a token cannot.")
    caller = caller_in(request)
    allow(request, Verb.ADMINISTER, Right.READ)

    def create(by: Author) -> tuple[Token, Shape]:
        token, secret = token_lifecycle.create(
            body.name,
            User.objects.get(pk=caller.user_id),
            verbs=body.verbs,
            queues=token_lifecycle.check_globs(body.queues),
            days=body.days,
            rate=body.rate,
            by=by,
            now=get_store().now(),
        )
        return token, {"secret": secret}

    return change(request, create, token_lifecycle.token_shape, secrets=["secret"], status=201)


@router.delete("/tokens/{id}", operation_id="revoke_token", summary="Revoke a token", response=schemas.Token)
@in_thread
def revoke_token(request: ApiRequest, id: RowId) -> HttpResponse:
    """Revoke a token: the next request with it is refused, in every process, and its streams end.

    A read-only site allows it. A token revokes with the verb `administer`.
    """
    owner_id = _owner(request)

    def revoke(by: Author) -> tuple[Token, Shape]:
        found = token_lifecycle.of_owner(owner_id).filter(pk=id, revoked_at=None)
        if not found.exists():
            raise Problem("NotFound", "There is no token of this id, or it was revoked before.")
        return token_lifecycle.revoke(id, by=by, now=get_store().now()), {}

    return change(request, revoke, token_lifecycle.token_shape)


def _owner(request: ApiRequest) -> int | None:
    """Return the owner of the tokens that the caller may see and revoke; None: all."""
    caller = caller_in(request)
    if caller.token_id is not None:
        administer(request)
        return None
    scope = allow(request, Verb.ADMINISTER, Right.READ)
    return None if scope.role.has(Right.ADMIN) else caller.user_id
