"""Values on one line, for lists, ends and live frames: from the beginning of a value, with what is hidden marked."""

from pqadmin.display import format as write
from pqadmin.display.redaction import MARK, Redaction, covered
from pqadmin.display.values import compressed, fields, msgpack
from pqadmin.display.values.decode import tuple_text
from pqadmin.display.values.nested import Inside, parts
from pqadmin.display.values.tree import written
from queues.admin import decoded_value

#: Bytes of a value that are looked at, packed and unpacked; in search of fields, more.
_SAMPLE, _SAMPLE_OF_FIELDS = 1_024, 4_096


def one_line(
    value: bytes,
    rules: Redaction,
    *,
    width: int = write.PREVIEW_WIDTH,
    more: bool = False,
    paths: tuple[str, ...] = (),
) -> str:
    """Write a value on one line, its fields of these paths where it has any.

    `more` says that bytes were already cut off its end.
    """
    kinds, sample = "", _SAMPLE_OF_FIELDS if paths else _SAMPLE
    for _ in range(compressed.MAX_LEVELS):
        value, more = value[:sample], more or len(value) > sample
        level = compressed.unpack(value, limit=sample, cut=more)
        if level is None:
            break
        kinds += f"{level.kind}: "
        value, more = level.data, not level.whole
    else:
        if compressed.unpack(value, limit=1, cut=more) is not None:
            return f"{kinds}{write.ELLIPSIS}"  # compressed deeper than is read
    return kinds + _one_line(value, rules, max(1, width - len(kinds)), more, paths)


def _one_line(value: bytes, rules: Redaction, width: int, more: bool, paths: tuple[str, ...]) -> str:
    if not value:
        return write.ELLIPSIS if more else ""
    elements = None if more else decoded_value(value)
    if elements is not None:
        return write.preview(tuple_text(elements, rules, _SAMPLE).encode("utf-8", "replace"), width=width)
    if write.as_text(value, cut=more) is None:
        packed = msgpack.unpack(value, rules, cut=more, inside=Inside(rules))
        if packed is not None:
            if paths and (line := fields.in_tree(packed.node, paths, rules, width=width)):
                return line
            line = written(packed.node, rules, room=width, mark=MARK)
            return write.preview(line.encode("utf-8", "replace"), width=width)
    spans, _ = parts(value, rules)
    if paths and (line := fields.in_json(value, paths, spans, width=width, more=more)):
        return line
    return write.preview(covered(value, spans, MARK.encode()) if spans else value, width=width, more=more)
