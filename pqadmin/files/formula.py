"""Cells that a spreadsheet would run: told apart, and made harmless.

A cell that begins with = + - @, a tab or a line end is a formula to some program, also behind blanks and in the full
width of CJK text. Exports of items write such text as base64, so that it comes back to the byte; where nothing comes
back, as in an audit, it gets an apostrophe in front, which spreadsheets take as the mark of text.
"""

_STARTS = tuple("=+-@\t\r\n|%＝＋－＠")
_BLANKS = " \u00a0\u3000\u200b\ufeff"


def is_formula(cell: str) -> bool:
    """Return whether some spreadsheet might run a cell of this text."""
    return cell.lstrip(_BLANKS).startswith(_STARTS)


def defused(cell: str) -> str:
    """Return the text as a cell that no spreadsheet runs."""
    return f"'{cell}" if is_formula(cell) else cell
