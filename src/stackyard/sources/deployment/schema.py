"""The schema gate: the shipped contract, then whatever a user's own schema asks for on top of it.

Both have to be met, so that a schema of the user's own can ask for more and never for less. Comments are
taken out before: a map that holds nothing else is empty.
"""

from __future__ import annotations

import functools
import importlib.resources
from typing import TYPE_CHECKING, Any

import orjson

from stackyard.base import extras
from stackyard.base.diagnostics import Kind
from stackyard.base.documents.schemacheck import SchemaChecker
from stackyard.base.errors import InvalidInputError, Location
from stackyard.base.files import read_text
from stackyard.sources.deployment.text import parse

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path as FilePath

    from stackyard.base.diagnostics import Diagnostics
    from stackyard.sources.deployment.text import ObjectText, Path

__all__ = [
    "SCHEMA_FILE",
    "OwnSchema",
    "SchemaFileError",
    "check_schema",
    "load_shipped_schema",
    "read_schema",
]

SCHEMA_FILE = "deployment.schema.json"

SHAPE = Kind(
    code="E-DEPLOYMENT-SCHEMA",
    summary="The deployment object does not have the shape that it must have",
    remedy="Correct the value; `stackyard deployment schema` prints the whole contract.",
)
NO_ENTRY = Kind(
    code="E-DEPLOYMENT-NO-ENTRY",
    summary="A map that must have entries has none",
    remedy="Put back what was there: a plan from an empty map would destroy all of it. Comments are none.",
)
OWN_SHAPE = Kind(
    code="E-DEPLOYMENT-OWN-SCHEMA",
    summary="The deployment object does not fit your own schema",
    remedy="Correct the value, or your schema.",
)
_LONGEST = 300


class SchemaFileError(InvalidInputError):
    """A user's own schema is no JSON Schema."""

    code = "E-DEPLOYMENT-SCHEMA-FILE"
    summary = "Your own schema cannot be used"
    default_remedy = (
        "Correct the schema; it has to be JSON Schema, with all that it refers to in the same file."
    )


class OwnSchema:
    """A schema that a user keeps beside the object.

    Args:
        path: Its file.

    Raises:
        FileError: It cannot be read.
        ObjectSyntaxError: It is not JSON.
        SchemaFileError: It is no schema.
        MissingExtraError: What reads it is not installed.
    """

    def __init__(self, path: FilePath) -> None:
        with extras.needed("schema", f"The schema {path}"):
            import jsonschema_rs  # lazy: only those who have a schema of their own need it

        self.path = path
        document = parse(read_text(path), str(path)).data
        try:
            self._validator = jsonschema_rs.validator_for(document, offline=True)
        except (ValueError, TypeError) as err:
            raise SchemaFileError(
                f"{path} is no JSON Schema: {_shorten(str(err))}.", where=Location(str(path))
            ) from err

    def errors(self, data: dict[str, Any]) -> Iterator[tuple[Path, str]]:
        """Return what is wrong with an object, by path."""
        for error in self._validator.iter_errors(data):
            yield tuple(error.instance_path), _shorten(error.message)


@functools.cache
def read_schema() -> bytes:
    """Return the shipped schema as it is shipped."""
    return (importlib.resources.files(__package__ or __name__) / SCHEMA_FILE).read_bytes()


@functools.cache
def load_shipped_schema() -> dict[str, Any]:
    """Return the shipped schema."""
    document: dict[str, Any] = orjson.loads(read_schema())
    return document


@functools.cache
def _make_shipped_checker() -> SchemaChecker:
    return SchemaChecker(load_shipped_schema())


def check_schema(
    document: ObjectText, data: dict[str, Any], own: OwnSchema | None, found: Diagnostics
) -> None:
    """Report all that the schemas refuse.

    Args:
        document: The object as it was written, for the places.
        data: What it says, without comments.
        own: The user's own schema.
        found: Takes the findings.
    """
    for error in _make_shipped_checker().findings(data):
        path = error.path
        if error.keyword == "not":
            name = ".".join(map(str, path))
            found.add(NO_ENTRY, f"`{name}` has no entry that is more than a comment.", document.place(path))
        else:
            text = f"{_format_path(path)}: {_shorten(error.message)}."
            found.add(SHAPE, text, document.place(path))
    if own is not None:
        for path, message in own.errors(data):
            found.add(OWN_SHAPE, f"{_format_path(path)}: {message} ({own.path}).", document.place(path))


def _format_path(path: Path) -> str:
    return ".".join(map(str, path)) or "The object"


def _shorten(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
