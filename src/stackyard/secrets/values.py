"""The scalars of a secrets file, with the types that SOPS gives them.

YAML is resolved as SOPS does it (Go's yaml.v3): `yes` is a string, `1e3` a float, `0o17` an integer, an
unquoted date a timestamp. Plain and encrypted files are resolved alike, so that encrypting one never changes
what it means. `to_bytes` is the spelling that is encrypted and that the MAC is made of.
"""

from __future__ import annotations

import base64
import binascii
import datetime
import decimal
import math
import re
from dataclasses import dataclass

__all__ = [
    "Scalar",
    "Timestamp",
    "UnknownTypeError",
    "from_bytes",
    "resolve_plain",
    "resolve_tagged",
    "to_bytes",
    "to_python",
    "type_name",
]


@dataclass(frozen=True, slots=True)
class Timestamp:
    """A point in time as SOPS spells it: RFC 3339 with as many digits of a second as there are."""

    text: str

    def __str__(self) -> str:
        return self.text


Scalar = str | bytes | int | float | bool | Timestamp | None


class UnknownTypeError(ValueError):
    """A value is of a type that cannot be in a secrets file, or is not written as its type is."""


_NULLS = frozenset(("", "~", "null", "Null", "NULL"))
_BOOLS = {word: True for word in ("true", "True", "TRUE")} | dict.fromkeys(("false", "False", "FALSE"), False)
_INFINITIES = {sign + word: sign for sign in ("", "+", "-") for word in (".inf", ".Inf", ".INF")}
_NANS = frozenset((".nan", ".NaN", ".NAN"))
_INTEGER = re.compile(
    r"[-+]?(0[bB](?P<bin>[01]+)|0[xX](?P<hex>[0-9a-fA-F]+)|0[oO]?(?P<oct>[0-7]+)|0|[1-9][0-9]*)"
)
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_DATE = re.compile(
    r"(?P<year>\d{4})-(?P<month>\d{1,2})-(?P<day>\d{1,2})"
    r"((?P<sep>[Tt ])(?P<hour>\d{1,2}):(?P<minute>\d{1,2}):(?P<second>\d{1,2})(\.(?P<fraction>\d{1,9}))?"
    r"(?P<zone>Z|[-+]\d\d:\d\d)?)?"
)
_LEAST_INT, _LARGEST_INT = -(2**63), 2**63 - 1
# Python refuses to read a longer one, and it would not fit anyway.
_LONGEST_INTEGER = 4_000


def resolve_plain(text: str) -> Scalar:
    """Return the value of an unquoted YAML scalar without a tag."""
    if text in _NULLS:
        return None
    if text in _BOOLS:
        return _BOOLS[text]
    if text in _INFINITIES:
        return -math.inf if _INFINITIES[text] == "-" else math.inf
    if text in _NANS:
        return math.nan
    if text[0] in "+-.0123456789":
        return _number_or_date(text)
    return text


def _number_or_date(text: str) -> Scalar:
    found = _timestamp(text)
    if found is not None:
        return found
    plain = text.replace("_", "")
    if len(plain) <= _LONGEST_INTEGER and (match := _INTEGER.fullmatch(plain)):
        number = _integer(match)
        if _LEAST_INT <= number <= _LARGEST_INT:
            return number
    # To Go, a number that no float can hold is text.
    if _FLOAT.fullmatch(plain) and math.isfinite(float(plain)):
        return float(plain)
    return text


def _integer(match: re.Match[str]) -> int:
    sign = -1 if match[0].startswith("-") else 1
    for base, name in ((2, "bin"), (16, "hex"), (8, "oct")):
        if match[name] is not None:
            return sign * int(match[name], base)
    return int(match[0])


def _timestamp(text: str) -> Timestamp | None:
    match = _DATE.fullmatch(text)
    if match is None:
        return None
    zone = match["zone"]
    if match["sep"] is not None and (match["sep"] == " ") == (zone is not None):
        # A zone belongs to the spelling with a T, and to no other.
        return None
    whole = [int(match[name] or 0) for name in ("year", "month", "day", "hour", "minute", "second")]
    try:
        moment = datetime.datetime(whole[0], whole[1], whole[2], whole[3], whole[4], whole[5])
    except ValueError:
        return None
    fraction = (match["fraction"] or "").rstrip("0")
    shown_zone = "Z" if zone in (None, "+00:00", "-00:00") else zone
    return Timestamp(f"{moment.isoformat()}{'.' + fraction if fraction else ''}{shown_zone}")


_TAGS = "tag:yaml.org,2002:"


def resolve_tagged(tag: str, text: str) -> Scalar:
    """Return the value of a scalar with an explicit tag; one that YAML does not define means a string.

    Raises:
        UnknownTypeError: The text is not what the tag says.
    """
    short = tag.removeprefix(_TAGS) if tag.startswith(_TAGS) else "str"
    if short == "binary":
        try:
            decoded = base64.b64decode("".join(text.split()), validate=True)
        except binascii.Error as err:
            raise UnknownTypeError("a !!binary value is not base64") from err
        return _text_or_bytes(decoded)
    if short == "str" or short not in ("null", "bool", "int", "float", "timestamp"):
        return text
    value = resolve_plain(text)
    if short == "float" and type(value) is int:
        return float(value)
    if type_name(value) != {"timestamp": "time", "null": "null"}.get(short, short):
        raise UnknownTypeError(f"the value is tagged !!{short} and is none")
    return value


def _text_or_bytes(data: bytes) -> str | bytes:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def type_name(value: Scalar) -> str:
    """Return the type of a value as SOPS names it."""
    match value:
        case None:
            return "null"
        case bool():
            return "bool"
        case int():
            return "int"
        case float():
            return "float"
        case Timestamp():
            return "time"
        case _:
            return "str"


def to_bytes(value: Scalar) -> bytes:
    """Return the bytes of a value that are encrypted and that the MAC is made of."""
    match value:
        case None:
            return b""
        case bool():
            return b"True" if value else b"False"
        case float():
            return _float_text(value).encode()
        case bytes():
            return value
        case _:
            return str(value).encode(errors="surrogatepass")


def _float_text(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    text = format(decimal.Decimal(repr(value)), "f")
    return text.rstrip("0").removesuffix(".") if "." in text else text


_READ_BOOLS = {word: True for word in ("1", "t", "T", "true", "TRUE", "True")} | dict.fromkeys(
    ("0", "f", "F", "false", "FALSE", "False"), False
)
_READ_INTEGER = re.compile(r"[-+]?[0-9]+")
_READ_FLOAT = re.compile(r"[-+]?(inf|infinity|nan|[0-9.]+(e[-+]?[0-9]+)?)", re.IGNORECASE)


def from_bytes(name: str, data: bytes) -> Scalar:
    """Return the value that decrypted bytes represent.

    Raises:
        UnknownTypeError: SOPS has no such type, or the bytes are not written as it is.
    """
    if name in ("str", "comment"):
        return _text_or_bytes(data)
    if name == "bytes":
        return data
    text = data.decode("latin-1")
    if name == "bool" and text in _READ_BOOLS:
        return _READ_BOOLS[text]
    if name == "int" and _READ_INTEGER.fullmatch(text):
        return int(text)
    if name == "float" and _READ_FLOAT.fullmatch(text):
        try:
            return float(text)
        except ValueError as err:
            raise UnknownTypeError("it says that it is a float, and is none") from err
    if name == "time" and (moment := _timestamp(text)) is not None:
        return moment
    raise UnknownTypeError(f"it says that it is of the type {name!r}, and is none")


def to_python(value: Scalar) -> object:
    """Return a value as ordinary Python: a timestamp becomes a datetime."""
    if not isinstance(value, Timestamp):
        return value
    return datetime.datetime.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", value.text))
