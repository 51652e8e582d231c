"""What a request asks for: its path is taken apart here, so that nothing behind it sees a raw one."""

from __future__ import annotations

import re
import urllib.parse
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.controller.refusals import Code, RequestRefusedError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["RequestPath", "read_path"]

# Nothing that we serve is called by more.
_LONGEST_PATH = 4096
_MOST_PARAMETERS = 20
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestPath:
    """A path, decoded once, with no segment that leads anywhere but down.

    Attributes:
        segments: Its parts; none is empty, `.` or `..`, and none holds a slash, a backslash or a control
            character. A slash at the end is left out.
        query: The parameters; of one that comes twice, the first.
    """

    segments: tuple[str, ...]
    query: Mapping[str, str]


def read_path(raw: str) -> RequestPath:
    """Take the path of a request apart.

    Raises:
        RequestRefusedError: It is one that only someone sends who tries to get somewhere else.
    """
    path, _, query = raw.partition("?")
    if len(path) > _LONGEST_PATH or not path.startswith("/"):
        raise _make_refusal("The path is too long, or does not begin with a slash.")
    encoded = path[1:].removesuffix("/").split("/")
    segments = () if encoded == [""] else tuple(_segment(part) for part in encoded)
    try:
        pairs = urllib.parse.parse_qsl(
            query, keep_blank_values=True, errors="replace", max_num_fields=_MOST_PARAMETERS
        )
    except ValueError as err:
        raise _make_refusal(f"The query has more than {_MOST_PARAMETERS} parameters.") from err
    return RequestPath(segments=segments, query=dict(reversed(pairs)))


def _segment(encoded: str) -> str:
    if _BAD_ESCAPE.search(encoded) or not encoded.isascii():
        raise _make_refusal("The path is not encoded as a path is.")
    try:
        # Once: what is still encoded after that is a name like any other.
        segment = urllib.parse.unquote(encoded, errors="strict")
    except UnicodeDecodeError as err:
        raise _make_refusal("The path is not UTF-8.") from err
    if segment in ("", ".", "..") or "/" in segment or _CONTROL.search(segment):
        raise _make_refusal("The path has a part that is no name.")
    return segment


def _make_refusal(detail: str) -> RequestRefusedError:
    return RequestRefusedError(400, Code.BAD_REQUEST, detail)
