"""What answers about people, tokens and boards hold, for the schema."""

from ninja import Schema
from pydantic import Field

from pqadmin.api.queues.schemas import Grant
from pqadmin.api.schemas import Time

_SHOWN_ONCE = "Shown once: null in an answer that is repeated under an Idempotency-Key."


class Person(Schema):
    """A person, with the role on all queues and the grants."""

    name: str
    role: str
    grants: list[Grant]
    active: bool = Field(description="May sign in.")
    created_at: Time
    last_sign_in: Time | None


class PersonWithPassword(Person):
    """A person, with a new password."""

    password: str | None = Field(description=_SHOWN_ONCE)


class People(Schema):
    """A page of people, by name."""

    people: list[Person]
    next: str | None


class Token(Schema):
    """A token, without its secret."""

    id: int
    token: str = Field(description="Its name.")
    owner: str
    verbs: list[str]
    queues: list[str]
    rate: int | None
    created_at: Time
    expires_at: Time | None
    revoked_at: Time | None
    last_used_at: Time | None
    last_address: str | None


class TokenWithSecret(Token):
    """A new token."""

    secret: str | None = Field(description=_SHOWN_ONCE)


class Tokens(Schema):
    """A page of tokens, by name."""

    tokens: list[Token]
    next: str | None


class Board(Schema):
    """A board as a caller sees it."""

    board: str = Field(description="Its address below /wall/.")
    name: str
    globs: list[str] = Field(description="Told to those that see all queues.")
    queues: int = Field(description="How many queues of the caller's it shows.")
    order: str
    density: str
    theme: str
    language: str
    rotation: list[str] = Field(description="The boards that it takes turns with.")
    seconds: int
    screens: int = Field(description="Links in use.")
    changed_by: str
    changed_at: Time


class Boards(Schema):
    """The boards that the caller sees, by name."""

    boards: list[Board]


class Link(Schema):
    """A link that lets one screen open a board."""

    id: int
    label: str
    state: str = Field(description="waiting, used, expired or revoked.")
    made_by: str
    made_at: Time
    used_at: Time | None
    seen_at: Time | None
    seen_from: str
    revoked_at: Time | None
    revoked_by: str


class BoardInFull(Board):
    """A board with its links."""

    links: list[Link]


class LinkWithAddress(Link):
    """A new link."""

    address: str | None = Field(description=f"To be opened on the screen, within a day. {_SHOWN_ONCE}")
    code: str | None = Field(description=f"To be typed there at /wall/ in its place. {_SHOWN_ONCE}")


class BoardRemoved(Schema):
    """A board that was removed."""

    board: str
