"""Messages about a line that the parser refused: the column, the reason, and the remedy."""

from __future__ import annotations

import re

from streamcut.errors import given
from streamcut.io.text import kernels as k

NUMBER = re.compile(rb"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_INDEX = re.compile(rb"\d+")
_BLANK = "a blank stands beside a colon; remove it with: sed 's/[ \\t]*:[ \\t]*/:/g' OLD > NEW"
_VALUE = "features need values, as in 7:1"
_MATRIX = "if rows are values of all features, write them as CSV, or the matrix with numpy.save"
_LIBFFM = re.compile(rb"\d+:\d+:[^:]*")
_FFM = "this looks like libffm's field:feature:value, which is not svmlight"
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
    places = [m.start() for m in (re.search(rb"[^\t\x20-\x7e]", body), re.search(rb"\0", line)) if m]
    if not places:
        return None
    at = min(places)
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
_REASONS: dict[int, tuple[str, str | None]] = {  # of the codes that say all
    k.BAD_WEIGHT: ("the weight after the label is not a number ≥ 0", None),
    k.BAD_QID: ("qid must be a whole number from 0 to 9223372036854775807", None),
    k.QID_MISSING: ("this row has no qid, but earlier rows have one", _QIDS),
    k.QID_UNEXPECTED: ("this row has a qid, but earlier rows have none", _QIDS),
    k.BAD_BYTE: ("unexpected byte", None),
    k.INDEX_LOW: ("feature index 0, but indices begin at 1", "--index-base=0 if the file counts from 0"),
    k.SUM_OVERFLOW: ("values of the same feature sum to more than the type can hold", "--dtype=float64"),
    k.DUPLICATE: ("the same feature twice in a row", "--duplicates=sum, or --duplicates=last"),
}


def _reason(code, line, at, token, rules, n_features, label_map) -> tuple[str, str | None]:
    if code == k.INDEX_LOW and _LIBFFM.fullmatch(token):
        return "more than one colon", _FFM
    if code in _REASONS:
        return _REASONS[code]
    name, colon, value = token.partition(b":")
    if code == k.BAD_LABEL:
        return _label_reason(token, rules, label_map)
    if code == k.INDEX_HIGH and n_features is not None:
        return f"feature index beyond {given('n-features', n_features)} (indices begin at {rules.base})", None
    if code == k.INDEX_HIGH:
        wide = _INDEX.fullmatch(name) and int(name) < 1 << 63
        return "feature index too large", "--wide-index takes indices above 2147483647" if wide else None
    if code == k.OVERFLOW:
        wide = _is_number(value) and abs(float(value)) < float("inf")
        return "value too large" + (" for float32" if wide else ""), "--dtype=float64" if wide else None
    if code == k.BAD_INDEX:
        if token.startswith(b"qid:"):
            twice = re.search(rb"(?<![^ \t])qid:", line[:at])
            return ("a second qid" if twice else "qid must come right after the label"), None
        if name in (b"cost", b"sid") and colon:
            return f"{name.decode()}: is not supported", None
        if not colon:
            apart = line[at + len(token) :].lstrip(b" \t").startswith(b":")
            plain = _VALUE if _INDEX.fullmatch(token) else _MATRIX if _is_number(token) else None
            return "expected index:value", _BLANK if apart else plain
        if _INDEX.fullmatch(name.removeprefix(b"-")):
            return "negative feature index", None
        return "the feature index is not a whole number", "--hash-bits=22 hashes names of features" if name else None
    if colon and not value:
        return "the value is missing after the colon", _BLANK if line[at + len(token) :].strip() else "is the file cut off?"
    if b":" in value:
        if _LIBFFM.fullmatch(token):
            return "more than one colon", _FFM
        return "more than one colon", "two features without a blank between them: is the line damaged?"
    return "the value is not a number", _number_hint(value)


def _label_reason(token: bytes, rules: k.Rules, label_map: bool) -> tuple[str, str | None]:
    if b":" in token and b"," in token:
        return "the label does not end", "blanks separate features, not commas: tr ',' ' ' < OLD > NEW"
    if b":" in token and not rules.label_weights:
        return "the label is missing, or has a weight", "a label comes first in every row; --label-weights reads label:weight"
    if label_map:
        return "the label is not in --label-map", None
    if token.endswith(b","):
        return "several labels", "labels stand without blanks, as in 3,4,5; remove them with: sed 's/, */,/g' OLD > NEW"
    if b"," in token:
        return "several labels", "--multilabel=LABEL makes the rows that have LABEL +1 and the others -1"
    if _is_number(token):
        return "the label is too large", None
    if token.lower().lstrip(b"+-") in (b"nan", b"inf", b"infinity"):
        return "the label is not finite", None
    return "the label is not a number", _number_hint(token) or "--label-map name=number,… translates names"


def _is_number(token: bytes) -> bool:
    return NUMBER.fullmatch(token) is not None


def _number_hint(token: bytes) -> str | None:
    if token.lower().lstrip(b"+-") in (b"nan", b"inf", b"infinity"):
        return "values must be finite"
    if re.fullmatch(rb"[+-]?0[xX].*", token):
        return "hexadecimal numbers are not supported"
    if re.fullmatch(rb"[+-]?\d+,\d+", token):
        return "the decimal mark must be a point"
    return None


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
