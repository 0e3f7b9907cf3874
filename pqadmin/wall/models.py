"""What the site keeps of walls: boards, and the links by which screens open them. Tokens are kept as hashes only."""

from django.db import models
from django.utils.translation import gettext_lazy as _

#: Seconds for which a board is shown before the next one of its rotation.
SECONDS, FEWEST_SECONDS, MOST_SECONDS = 30, 5, 3600


class Board(models.Model):
    """A choice of queues and how a screen shows them."""

    class Order(models.TextChoices):
        WORST = "worst", _("Worst first")
        NAME = "name", _("By name")
        DEPTH = "depth", _("Deepest first")

    class Density(models.TextChoices):
        FAR = "far", _("Far")
        MIDDLE = "middle", _("Middle")
        NEAR = "near", _("Near")

    class Theme(models.TextChoices):
        DARK = "dark", _("Dark")
        LIGHT = "light", _("Light")
        AUTO = "auto", _("As the screen's system")

    #: Its address; stays, as screens hang on it.
    slug = models.SlugField(max_length=60, unique=True)
    name = models.CharField(max_length=80)
    globs = models.JSONField(default=list)
    order = models.CharField(max_length=8, choices=Order.choices, default=Order.WORST)
    density = models.CharField(max_length=8, choices=Density.choices, default=Density.FAR)
    theme = models.CharField(max_length=8, choices=Theme.choices, default=Theme.DARK)
    #: The code of the language that it is shown in; empty: the one that the screen's browser asks for.
    language = models.CharField(max_length=16, blank=True, default="")
    #: Keys of the boards that the screen shows after this one, in turn.
    rotation = models.JSONField(default=list)
    seconds = models.PositiveIntegerField(default=SECONDS)
    made_by = models.CharField(max_length=150)
    made_at = models.DateTimeField()
    changed_by = models.CharField(max_length=150)
    changed_at = models.DateTimeField()

    class Meta:
        ordering = ["name", "pk"]

    def __str__(self) -> str:
        return self.name

    @property
    def stamp(self) -> str:
        """Return a text that is another one after every change."""
        return self.changed_at.isoformat()


class Link(models.Model):
    """What lets one screen open one board, without a login. Its token works once; then the screen has a cookie."""

    board = models.ForeignKey(Board, on_delete=models.CASCADE, related_name="links")
    #: Where the screen is, so that people know which one they revoke.
    label = models.CharField(max_length=80)
    token_hash = models.CharField(max_length=64, unique=True)
    #: Of the short code, which can be typed on the screen in the token's place; null: made before there were codes.
    code_hash = models.CharField(max_length=64, unique=True, null=True)  # noqa: DJ001 # as below
    cookie_hash = models.CharField(max_length=64, unique=True, null=True)  # noqa: DJ001 # many without, no two equal
    made_by = models.CharField(max_length=150)
    made_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)
    seen_at = models.DateTimeField(null=True)
    seen_from = models.CharField(max_length=64, blank=True)
    revoked_at = models.DateTimeField(null=True)
    revoked_by = models.CharField(max_length=150, blank=True)

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.label
