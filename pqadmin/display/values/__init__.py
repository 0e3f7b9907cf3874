"""Values as an operator sees them: a tree with exact numbers, text, or a hex dump; unpacked, and with parts hidden.

Values are hostile. Nothing here runs or follows what a value says; work is bounded by nodes, depth, characters and
unpacked bytes whatever was stored; and every character that could hide or reorder others is made visible. One module
for each kind of value; `looking` says which one a value is.
"""

from pqadmin.display.values.decode import hidden, masked, plain
from pqadmin.display.values.json_text import NotJSON, parse_json
from pqadmin.display.values.preview import one_line
from pqadmin.display.values.text import as_html
from pqadmin.display.values.tree import MAX_NODES
from pqadmin.display.values.views import VIEWS, Shown, View, show

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
