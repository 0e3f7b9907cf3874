"""JSON: read with its numbers as they are written and its members in order."""

import json
from typing import Any

from django.utils.translation import gettext as _

from pqadmin.display.values.tree import Members, Number


class NotJSON(ValueError):
    """The text is no JSON; the message says where and why."""


def parse_json(text: str) -> Any:
    """Read JSON, keeping numbers as their digits and members in order; raise `NotJSON`."""
    try:
        return _decoder.decode(text)
    except json.JSONDecodeError as error:
        where = {"line": error.lineno, "column": error.colno}
        raise NotJSON(_("Line %(line)s, column %(column)s is not JSON.") % where) from None
    except RecursionError:
        raise NotJSON(_("This is nested too deeply to be read as JSON.")) from None


def _refuse(constant: str) -> Any:
    raise NotJSON(_("%(constant)s is no JSON value.") % {"constant": constant})


_decoder = json.JSONDecoder(object_pairs_hook=Members, parse_int=Number, parse_float=Number, parse_constant=_refuse)
