"""`bootstrap.yaml` as a page of the reference."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

from stackyard.desired.values import Value
from stackyard.sources.cluster.bootstrap_file import BootstrapFields

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["render"]

_HEADING = """\
# Fields of bootstrap.yaml

`bootstrap.yaml` is beside `cluster.yaml`. It says what a cluster gets once its Kubernetes API answers; every
part is optional. Without the file, a cluster gets Cilium and nothing else. `stackyard cluster validate`
checks it, and `stackyard cluster up` applies it: [how to](../howto/talos-up.md).

Paths of files are from the folder of `bootstrap.yaml`. A field in **bold** has to be there. The file has no
secret: it names files that are encrypted, and fields of `cluster.sops.yaml`. A secret in it is refused.

The JSON Schema is [bootstrap](schema/bootstrap.json).
"""
_LIST = "Each entry of the list has:\n"


def render() -> str:
    """Return the page."""
    parts = [_HEADING, "## The file\n", _table(BootstrapFields)]
    for name, model, is_list in _list_parts(BootstrapFields):
        parts += [f"## {name}\n", _describe(model), *((_LIST,) if is_list else ()), _table(model)]
    return "\n".join(parts)


def _list_parts(model: type[Value], prefix: str = "") -> Iterator[tuple[str, type[Value], bool]]:
    """Yield the parts of a model that have fields of their own, from the outside to the inside."""
    for name, info in model.model_fields.items():
        for part, is_list in _list_models(info.annotation):
            yield f"{prefix}{name}", part, is_list
            yield from _list_parts(part, f"{prefix}{name}.")


def _list_models(annotation: Any, *, is_list: bool = False) -> Iterator[tuple[type[Value], bool]]:
    if isinstance(annotation, type) and not get_args(annotation):
        if issubclass(annotation, Value):
            yield annotation, is_list
        return
    for argument in get_args(annotation):
        yield from _list_models(argument, is_list=is_list or get_origin(annotation) is tuple)


def _describe(model: type[Value]) -> str:
    return f"{(model.__doc__ or '').strip()}\n"


def _table(model: type[Value]) -> str:
    lines = ["| field | value | when absent | what it is for |", "|---|---|---|---|"]
    required = REQUIRED.get(model.__name__, ())
    for name, info in model.model_fields.items():
        is_required = info.is_required() or name in required
        shown = f"**`{name}`**" if is_required else f"`{name}`"
        default = f"`{info.default}`" if isinstance(info.default, str) else ""
        words = (info.description or "").replace("|", "\\|")
        lines.append(f"| {shown} | {_kind(info.annotation)} | {default} | {words} |")
    return "\n".join(lines) + "\n"


# What the loader asks for by itself, so that a finding names what is missing.
REQUIRED = {"ChartFields": ("name", "chart")}


def _kind(annotation: Any) -> str:
    """Return what a value may be, in words."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _kind(arguments[0])
    if origin is Literal:
        return " or ".join(f"`{one}`" for one in arguments)
    if origin in (Union, types.UnionType):
        return " or ".join(_kind(one) for one in arguments if one is not type(None))
    if origin is tuple:
        return "list" if "fields" in _kind(arguments[0]) else f"list of {_kind(arguments[0])}s"
    if origin is dict:
        return "mapping"
    if isinstance(annotation, type) and issubclass(annotation, Value):
        return "fields"
    return {str: "text", bool: "true or false", int: "number"}.get(annotation, "text")
