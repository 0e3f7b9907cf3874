"""Values for operators: a tree with exact numbers, text, or a hex dump. Decompressed and redacted.

Values are untrusted. Nothing here runs or follows their contents; work is bounded by nodes, depth, characters and
decompressed bytes; and every character that could hide or reorder text is made visible. One module for each kind of
value; `decode` finds the kind.
"""

from pqadmin.display.values.decode import hidden, masked, plain, what_searchers_see
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
    "what_searchers_see",
]
