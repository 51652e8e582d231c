"""Every error code with its meaning, for `stackyard explain-error` and the reference.

`catalogue.json` is generated from the classes and kinds by `make docs`: to collect them, every module would
have to be imported. `explanations.toml` is written by hand, for the codes that users meet most.
"""

from __future__ import annotations

import importlib.resources
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.base.documents.jsontext import parse_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stackyard.base.errors import StackyardError

__all__ = ["ErrorCode", "Explanation", "find_explained", "read_catalogue", "read_explanations"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A longer explanation of a code.

    Attributes:
        text: Why the check exists, typical causes, what to check.
        page: The page of the documentation, below docs/.
    """

    text: str
    page: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorCode:
    """What a code means.

    Attributes:
        code: The code.
        summary: What it says, in a few words.
        meaning: What that means; empty where the summary says it all.
        remedy: What to do.
        exit_status: The exit status of a command that fails with it; None for a finding, which is part of an
            error or a warning.
        explanation: More, for some codes.
    """

    code: str
    summary: str
    meaning: str = ""
    remedy: str = ""
    exit_status: int | None = None
    explanation: Explanation | None = None


def read_catalogue() -> Mapping[str, ErrorCode]:
    """Return every code."""
    found: dict[str, dict[str, Any]] = parse_json(_read("catalogue.json"))
    explained = read_explanations()
    return {
        code: ErrorCode(code=code, explanation=explained.get(code), **fields)
        for code, fields in sorted(found.items())
    }


def read_explanations() -> Mapping[str, Explanation]:
    """Return the explanations that were written by hand."""
    import tomllib  # lazy: only a command that failed needs it

    found = tomllib.loads(_read("explanations.toml").decode())
    return {code: Explanation(text=row["text"].strip(), page=row["page"]) for code, row in found.items()}


def find_explained(error: StackyardError) -> str | None:
    """Return the code of an error, or of the first of its findings, that has an explanation."""
    codes: Iterable[str] = (*(found.kind.code for found in error.diagnostics), error.code)
    explained = read_explanations()
    return next((code for code in codes if code in explained), None)


def _read(name: str) -> bytes:
    return importlib.resources.files(__name__).joinpath(name).read_bytes()
