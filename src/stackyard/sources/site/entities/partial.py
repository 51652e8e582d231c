"""Entities made from the values of `Desired`: the same fields with the same rules, but none of them required.

A guest is written in parts (preset, template, env entry), so that each part may leave anything out. Making
the parts from the model itself keeps every name and rule the same in both.
"""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Annotated, Any, Union

from pydantic import create_model

from stackyard.sources.site.entities.values import Entity

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pydantic import BaseModel

__all__ = ["partial"]


def partial(
    name: str,
    *models: type[BaseModel],
    doc: str,
    without: Collection[str] = (),
    replaced: Mapping[str, Any] = types.MappingProxyType({}),
    base: type[Entity] = Entity,
) -> Any:
    """Return a model with the fields of others, all of them optional.

    Args:
        name: What to call it.
        models: Whose fields it gets; a field of several may be what any of them allows.
        doc: What it is.
        without: Fields to leave out.
        replaced: The types of fields that are to differ, or to be there on top.
        base: What to derive it from.
    """
    allowed: dict[str, list[Any]] = {}
    for model in models:
        for field, info in model.model_fields.items():
            kinds = allowed.setdefault(field, [])
            kind: Any = info.annotation
            kind = Annotated[(kind, *info.metadata)] if info.metadata else kind
            if kind not in kinds:
                kinds.append(kind)
    fields = {field: Union[tuple(kinds)] for field, kinds in allowed.items() if field not in without}  # noqa: UP007
    fields.update(replaced)
    optional: dict[str, Any] = {field: (kind | None, None) for field, kind in fields.items()}
    return create_model(name, __base__=base, __doc__=doc, __module__=__name__, **optional)
