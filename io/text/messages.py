"""Messages about a line that the parser refused: the column, the reason, and the remedy."""

from __future__ import annotations

import re

from streamcut.errors import given
from streamcut.io.text import kernels as k

NUMBER = re.compile(rb"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_INDEX = re.compile(rb"\d+")
_BLANK = "a blank stands next to a colon; remove it with: sed 's/[ \\t]*:[ \\t]*/:/g' OLD > NEW"
_VALUE = "features need values, as in 7:1"
_MATRIX = "if rows are values of all features, write them as CSV, or the matrix with numpy.save"
_SHOWN = 60  # characters of a token
OLD_MAC = "lines end in a carriage return alone (old Mac line ends); convert them with: tr '\\r' '\\n' < OLD > NEW"


def explain(
    code: int,
    line: bytes,
    at: int,
    *,
    first_line: bool,
    rules: k.Rules,
    n_features: int | None,
    label_map: bool,
    model_takes: str | None = None,
) -> tuple[int, str]:
    """(column from 1, reason with token and hint) for `line`, which the kernel refused with `code` at its byte `at`.

    `model_takes`: the features of the model that reads the line, for which hints about options of `convert` would not help.
    """
    line = line.removesuffix(b"\r")
    if code in (k.DUPLICATE, k.SUM_OVERFLOW):
        at = _second_of_its_kind(line)
    bad = _bad_byte(line)
    if bad is not None and bad[0] <= at + len(_token(line, at)):
        at, reason = bad
        return at + 1, reason
    token = _token(line, at)
    reason, hint = _reason(code, line, at, token, rules, n_features, label_map)
    if model_takes is not None and "--label-map" in reason:
        reason = "the label is not one that the model knows"
    guess = _guess(line, first_line) if code in (k.BAD_LABEL, k.BAD_INDEX, k.BAD_VALUE) else None
    hint = guess or hint
    if model_takes is not None and hint is not None and "--" in hint and "--index-base" not in hint:
        hint = f"the model takes {model_takes}" if code == k.BAD_INDEX else "the model was trained on other input than this"
    shown = token[:_SHOWN].decode("ascii", "backslashreplace") + ("…" if len(token) > _SHOWN else "")
    return at + 1, f"{reason}: {shown or 'end of line'}" + (f" ({hint})" if hint else "")


def _token(line: bytes, at: int) -> bytes:
    end = at
    while end < len(line) and line[end] not in b" \t#":
        end += 1
    return line[at:end]


def _bad_byte(line: bytes) -> tuple[int, str] | None:
    """The first forbidden byte of a line: control characters, and non-ASCII bytes outside comments."""
    body = line.partition(b"#")[0]
    positions = [m.start() for m in (re.search(rb"[^\t\x20-\x7e]", body), re.search(rb"\0", line)) if m]
    if not positions:
        return None
    at = min(positions)
    byte = line[at]
    names = {0: "NUL byte", 11: "vertical tab", 12: "form feed", 13: "carriage return inside a line"}
    name = names.get(byte, f"byte 0x{byte:02x} outside of ASCII" if byte > 126 else f"control character 0x{byte:02x}")
    hint = f" ({OLD_MAC})" if byte == 13 else ""
    if line.startswith((b"\xff\xfe", b"\xfe\xff")) or line.count(0) > len(line) // 4:
        hint = " (this looks like UTF-16 or a binary file; svmlight is plain ASCII text)"
    elif line.startswith(b"\x89HDF"):
        hint = " (this looks like an HDF5 file)"
    return at, name + hint


def _second_of_its_kind(line: bytes) -> int:
    """The position of the first feature that occurs earlier in the line."""
    seen: set[int | bytes] = set()
    body = line.partition(b"#")[0]
    for match in re.finditer(rb"(?<![^ \t])([^ \t:]+):", body):
        name: int | bytes = int(match[1]) if _INDEX.fullmatch(match[1]) else match[1]
        if name in seen:
            return match.start()
        seen.add(name)
    return 0


_QIDS = "either all rows have a qid, right after the label, or none"
_CLOSE = "labels stand without blanks, as in 3,4,5; remove them with: sed 's/, */,/g' OLD > NEW"
_LIBFFM = "this looks like libffm's field:feature:value, which is not svmlight"
_NOT_FINITE = rb"(?i:[+-]?(nan|inf|infinity))"
_ANY = rb".*"
# (code of the kernel, what the token is, the reason, the hint), of which the first that fits is said
_REASONS: list[tuple[int, bytes, str, str | None]] = [
    (k.BAD_WEIGHT, _ANY, "the weight after the label is not a number ≥ 0", None),
    (k.BAD_QID, _ANY, "qid must be a whole number from 0 to 9223372036854775807", None),
    (k.QID_MISSING, _ANY, "this row has no qid, but earlier rows have one", _QIDS),
    (k.QID_UNEXPECTED, _ANY, "this row has a qid, but earlier rows have none", _QIDS),
    (k.BAD_BYTE, _ANY, "unexpected byte", None),
    (k.INDEX_LOW, rb"\d+:\d+:[^:]*", "more than one colon", _LIBFFM),
    (k.INDEX_LOW, _ANY, "feature index 0, but indices begin at 1", "--index-base=0 if the file counts from 0"),
    (k.SUM_OVERFLOW, _ANY, "values of the same feature sum to more than the type can hold", "--dtype=float64"),
    (k.DUPLICATE, _ANY, "the same feature twice in a row", "--duplicates=sum, or --duplicates=last"),
    (
        k.BAD_LABEL,
        rb".*,",
        "several labels",
        "labels stand without blanks, as in 3,4,5; remove them with: sed 's/, */,/g' OLD > NEW",
    ),
    (k.BAD_LABEL, rb".*,.*", "several labels", "--multilabel=LABEL makes the rows that have LABEL +1 and the others -1"),
    (k.BAD_LABEL, NUMBER.pattern, "the label is too large", None),
    (k.BAD_LABEL, _NOT_FINITE, "the label is not finite", None),
    (k.BAD_LABEL, rb"[+-]?0[xX].*", "the label is not a number", "hexadecimal numbers are not supported"),
    (k.BAD_LABEL, _ANY, "the label is not a number", "--label-map name=number,… translates names"),
    (k.BAD_INDEX, rb"(cost|sid):.*", "{}: is not supported", None),
    (k.BAD_INDEX, rb"qid:.*", "qid must come right after the label", None),
    (k.BAD_INDEX, rb"\d+", "expected index:value", _VALUE),
    (k.BAD_INDEX, NUMBER.pattern, "expected index:value", _MATRIX),
    (k.BAD_INDEX, rb"[^:]*", "expected index:value", None),
    (k.BAD_INDEX, rb"-?\d+:.*", "negative feature index", None),
    (k.BAD_INDEX, rb":.*", "the feature index is not a whole number", None),
    (k.BAD_INDEX, _ANY, "the feature index is not a whole number", "--hash-bits=22 hashes names of features"),
    (k.BAD_VALUE, rb"[^:]*:?", "the value is missing after the colon", "is the file cut off?"),
    (k.BAD_VALUE, rb"\d+:\d+:[^:]*", "more than one colon", _LIBFFM),
    (k.BAD_VALUE, rb"[^:]*:.*:.*", "more than one colon", "two features without a blank between them: is the line damaged?"),
    (k.BAD_VALUE, rb"[^:]*:" + _NOT_FINITE, "the value is not a number", "values must be finite"),
    (k.BAD_VALUE, rb"[^:]*:[+-]?0[xX].*", "the value is not a number", "hexadecimal numbers are not supported"),
    (k.BAD_VALUE, rb"[^:]*:[+-]?\d+,\d+", "the value is not a number", "the decimal mark must be a point"),
    (k.BAD_VALUE, _ANY, "the value is not a number", None),
]


def _reason(code, line, at, token, rules, n_features, label_map) -> tuple[str, str | None]:
    name, colon, value = token.partition(b":")
    rest = line[at + len(token) :].lstrip(b" \t")
    if code == k.BAD_LABEL and colon and b"," in token:
        return "the label does not end", "blanks separate features, not commas: tr ',' ' ' < OLD > NEW"
    if code == k.BAD_LABEL and colon and not rules.label_weights:
        return "the label is missing, or has a weight", "a label comes first in every row; --label-weights reads label:weight"
    if code == k.BAD_LABEL and label_map:
        return "the label is not in --label-map", None
    if code == k.INDEX_HIGH and n_features is not None:
        return f"feature index beyond {given('n-features', n_features)} (indices begin at {rules.base})", None
    if code == k.INDEX_HIGH:
        wide = name.isdigit() and int(name) < 1 << 63
        return "feature index too large", "--wide-index takes indices above 2147483647" if wide else None
    if code == k.OVERFLOW:
        wide = NUMBER.fullmatch(value) is not None and abs(float(value)) < float("inf")
        return "value too large" + (" for float32" if wide else ""), "--dtype=float64" if wide else None
    fitting = ((reason, hint) for of, what, reason, hint in _REASONS if of == code and re.fullmatch(what, token, re.DOTALL))
    reason, hint = next(fitting)
    if code == k.BAD_INDEX and colon and name == b"qid" and re.search(rb"(?<![^ \t])qid:", line[:at]):
        return "a second qid", None
    if (code == k.BAD_INDEX and not colon and rest.startswith(b":")) or (code == k.BAD_VALUE and not value and rest.strip()):
        hint = _BLANK
    return reason.format(name.decode(errors="replace")), hint


def _guess(line: bytes, first_line: bool) -> str | None:
    """A hint at the other format that a whole line looks like."""
    text = line.strip()
    if text.startswith((b"{", b"[")):
        return "this looks like JSON"
    if b"|" in text:
        return "this looks like Vowpal Wabbit: say --format=vw"
    if first_line and re.fullmatch(rb"\d\d+[ \t]+\d+([ \t]+\d+)?", text):
        return f"if this is the header of an XMLC file, 'rows features labels', remove the line; else {_VALUE}"
    if b":" not in text and (text.count(b",") >= 2 or text.count(b";") >= 2):
        return "this looks like CSV"
    if text.startswith((b"PK\x03", b"PAR1", b"<")):
        return "this looks like another kind of file"
    return None
