"""A file held against its model: every problem as a finding, and what is left without them."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from stackyard.base.diagnostics import Kind
from stackyard.sources.cluster.words import FORMS
from stackyard.sources.site.findings import ShapeKinds, add_findings
from stackyard.sources.site.unions import real_path

if TYPE_CHECKING:
    from pydantic import BaseModel

    from stackyard.base.diagnostics import Diagnostics
    from stackyard.sources.site.document import Key, LocatedValues

__all__ = ["MISSING", "UNKNOWN", "keep_valid"]

UNKNOWN = Kind(
    code="E-CLUSTER-KEY",
    summary="A field is not known here",
    remedy="Correct or remove it; `stackyard cluster explain FIELD` and `cluster schema` show what is known.",
)
MISSING = Kind(
    code="E-CLUSTER-MISSING",
    summary="A field is missing",
    remedy="Add it; `stackyard cluster explain FIELD` says what it is for.",
)
WRONG = Kind(
    code="E-CLUSTER-VALUE",
    summary="A value does not fit",
    remedy="Correct the value; `stackyard cluster explain FIELD` shows what it may be.",
)
_KINDS = ShapeKinds(unknown=UNKNOWN, missing=MISSING, wrong=WRONG, forms=FORMS)
# What shows only once other mistakes are gone shows in the next round.
_ROUNDS = 4

M = TypeVar("M", bound="BaseModel")


def keep_valid(
    model: type[M],
    places: LocatedValues,
    found: Diagnostics,
    *,
    known: type[BaseModel] | None = None,
    is_secret: bool = False,
) -> tuple[M, dict[str, Any]]:
    """Return what is valid in a file, as its model and as plain values; the rest becomes findings.

    Args:
        model: What the file has to be; none of its own fields may be required.
        places: The file.
        found: Takes the findings.
        known: The model with all names, to suggest one of them; the same when absent.
        is_secret: Whether values must not be quoted.
    """
    try:
        return model.model_validate(places.data), places.data
    except ValidationError as err:
        add_findings(err, places, found, model=known or model, is_secret=is_secret, kinds=_KINDS)
        error = err
    data = copy.deepcopy(places.data)
    for _ in range(_ROUNDS):
        for each in error.errors(include_url=False):
            _drop(data, real_path(data, each["loc"]))
        try:
            return model.model_validate(data), data
        except ValidationError as err:
            error = err
    return model.model_validate({}), {}


def _drop(data: dict[str, Any], path: list[Key]) -> None:
    """Remove what does not fit: a key, or, where an item of a list is wrong, the key of the list."""
    if not path:
        return
    if len(path) == 2 and path[0] == "nodes":
        data["nodes"][path[1]] = {}
        return
    while isinstance(path[-1], int):
        path = path[:-1]
    above: Any = data
    for key in path[:-1]:
        try:
            above = above[key]
        except (KeyError, IndexError, TypeError):
            return
    if isinstance(above, dict):
        above.pop(path[-1], None)
