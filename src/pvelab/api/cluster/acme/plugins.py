"""Challenge plugins: `/cluster/acme/plugins`. `standalone`, which needs no settings, is always there."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any

from pvelab.server.params.texts import split_list
from pvelab.server.problems import PveError
from pvelab.server.routing import route
from pvelab.world.sections import Kind, SectionFile

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.server.call import Call
    from pvelab.world.store import Document

__all__ = ["create_plugin", "delete_plugin", "list_plugins", "read_plugin", "update_plugin"]

_LOCK = "file-priv_acme_plugins_cfg"
_COMMON = frozenset(("nodes", "disable"))
_KINDS = {
    "standalone": Kind(name="standalone", optional=_COMMON),
    "dns": Kind(name="dns", required=frozenset(("api",)), optional=_COMMON | {"data", "validation-delay"}),
}
_NOT_SETTINGS = frozenset(("id", "type", "digest", "delete"))


@route("GET /cluster/acme/plugins")
def list_plugins(call: Call) -> Any:
    """List the plugins."""
    wanted = call.params.get("type")
    return [
        _format_plugin(call, ident, section)
        for ident, section in _all(call).items()
        if wanted in (None, section["type"])
    ]


@route("GET /cluster/acme/plugins/{id}")
def read_plugin(call: Call) -> Any:
    """Read one plugin."""
    found = _all(call).get(call.params["id"])
    if found is None:
        raise PveError(f"ACME plugin '{call.params['id']}' not defined")
    return _format_plugin(call, call.params["id"], found)


@route("POST /cluster/acme/plugins")
def create_plugin(call: Call) -> Any:
    """Add a plugin."""
    ident = call.params["id"]
    with call.world.cluster.lock_file(_LOCK):
        if ident in _all(call):
            raise PveError(f"ACME plugin ID '{ident}' already exists")
        _file(call).put(ident, _check_plugin(call, _KINDS[call.params["type"]], create=True))


@route("PUT /cluster/acme/plugins/{id}")
def update_plugin(call: Call) -> Any:
    """Change a plugin; what is both removed and set is set."""
    ident = call.params["id"]
    with call.world.cluster.lock_file(_LOCK):
        _file(call).check_digest(call.params.get("digest"))
        old = _all(call).get(ident)
        if old is None:
            raise PveError(f"ACME plugin ID '{ident}' does not exist")
        kind = _KINDS[old["type"]]
        kept = kind.without(old, split_list(call.params.get("delete", "")), {})
        _file(call).put(ident, {**kept, **_check_plugin(call, kind, create=False)})


@route("DELETE /cluster/acme/plugins/{id}")
def delete_plugin(call: Call) -> Any:
    """Remove a plugin, if it is there."""
    with call.world.cluster.lock_file(_LOCK):
        _file(call).remove(call.params["id"])


def _file(call: Call) -> SectionFile:
    return SectionFile(call.store, "acme_plugins")


def _all(call: Call) -> Mapping[str, Document]:
    return {"standalone": {"type": "standalone"}, **_file(call).all()}


def _format_plugin(call: Call, ident: str, section: Document) -> dict[str, Any]:
    return {**section, "plugin": ident, "digest": _file(call).digest}


def _check_plugin(call: Call, kind: Kind, *, create: bool) -> dict[str, Any]:
    given = {key: value for key, value in call.params.items() if key not in _NOT_SETTINGS}
    section = kind.validate(given, create=create)
    if "data" in section:
        # It comes encoded, because it has lines, and is shown as it is.
        section["data"] = _decode(section["data"])
    return section


def _decode(text: str) -> str:
    # Perl passes over what is not of the alphabet; Python does so for ASCII alone.
    standard = text.translate(str.maketrans("-_", "+/")).encode("ascii", "ignore")
    padded = standard + b"=" * (-len(standard) % 4)
    try:
        return base64.b64decode(padded).decode("utf-8", "replace")
    except binascii.Error:
        return ""
