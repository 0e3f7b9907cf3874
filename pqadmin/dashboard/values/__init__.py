"""Values as an operator sees them: a tree with exact numbers, text, or a hex dump; unpacked, and with parts hidden.

Values are hostile. Nothing here runs or follows what a value says; work is bounded by nodes, depth, characters and
unpacked bytes whatever was stored; and every character that could hide or reorder others is made visible. One module
for each kind of value; `looking` says which one a value is.
"""

from pqadmin.dashboard.values.json_text import NotJSON, parse_json
from pqadmin.dashboard.values.looking import hidden, masked, plain
from pqadmin.dashboard.values.preview import one_line
from pqadmin.dashboard.values.shown import VIEWS, Shown, View, show
from pqadmin.dashboard.values.text import as_html
from pqadmin.dashboard.values.tree import MAX_NODES

__all__ = [
    "MAX_NODES",
    "VIEWS",
    "NotJSON",
    "Shown",
    "View",
    "as_html",
    "hidden",
    "masked",
    "one_line",
    "parse_json",
    "plain",
    "show",
]
