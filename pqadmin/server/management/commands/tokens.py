"""`tokens`: list the tokens of programs."""

from typing import Any

from rich.table import Table

from pqadmin.accounts.models import Token
from pqadmin.commands.tables import console
from pqadmin.server.site_command import SiteCommand
from pqadmin.token_lifecycle import token_shape


class Command(SiteCommand):
    """List the tokens of programs: owner, verbs, queues, expiry and last use."""

    listed = "tokens"

    def handle(self, *args: Any, **options: Any) -> None:
        """Print a line for each token that is not revoked."""
        self.prepare_tables()
        tokens = Token.objects.filter(revoked_at=None).select_related("owner").order_by("name")
        if options["json"]:
            self.answer({"tokens": [token_shape(token) for token in tokens]})
            return
        table = Table(box=None, pad_edge=False, header_style="dim")
        for column in ("Token", "Owner", "Verbs", "Queues", "Expires", "Last used", "From"):
            table.add_column(column, no_wrap=column in ("Token", "Expires", "Last used"))
        for token in tokens:
            times = (f"{at:%Y-%m-%d %H:%M}" if at else "never" for at in (token.expires_at, token.last_used_at))
            verbs, queues = ",".join(token.verbs), ",".join(token.queues)
            table.add_row(token.name, token.owner.get_username(), verbs, queues, *times, token.last_address)
        console(self.stdout).print(table)
