"""The context of a run in a file, so that one run continues where another ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from stackyard.base import files
from stackyard.base.documents.jsontext import JsonError, parse_json
from stackyard.base.errors import InvalidInputError, Location

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["ContextFileError", "read_context", "write_context"]


class ContextFileError(InvalidInputError):
    """The file of `--context-file` holds something else than the context of a run."""

    code = "E-SCENARIO-CONTEXT"
    summary = "The context file cannot be used"
    default_remedy = "Correct the file, or remove it: a run writes a new one."


def read_context(path: Path) -> dict[str, Any]:
    """Return what an earlier run left; nothing when there is no file.

    Raises:
        ContextFileError: It is not a JSON object.
        FileError: It cannot be read.
    """
    if not path.exists():
        return {}
    where = Location(str(path))
    try:
        document = parse_json(files.read_text(path))
    except JsonError as err:
        raise ContextFileError(f"{path} is not valid JSON: {err}.", where=where) from err
    if not isinstance(document, dict):
        raise ContextFileError(f"{path} holds no JSON object.", where=where)
    return document


def write_context(path: Path, values: Mapping[str, Any]) -> None:
    """Write what a run leaves, completely or not; what JSON has no form for becomes text.

    Raises:
        FileError: It cannot be written.
    """
    shown = {key: value for key, value in values.items() if not key.startswith("_")}
    data = orjson.dumps(shown, default=str, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS)
    files.replace_file(path, data + b"\n")
