"""The cluster's own models of CPUs, and flags: `/cluster/qemu`. Documents: `cpu_models/<name>`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.capabilities import CPU_FLAGS
from pvelab.server.params.texts import split_list
from pvelab.server.problems import PveError
from pvelab.server.routing import route
from pvelab.world.sections import Kind, SectionFile

if TYPE_CHECKING:
    from pvelab.server.call import Call
    from pvelab.world.store import Document

__all__ = [
    "create_model",
    "delete_model",
    "list_flags",
    "list_models",
    "list_qemu",
    "read_model",
    "update_model",
]

MODELS = "cpu_models"

_LOCK = "file-virtual-guest-cpu-models_conf"
_SEEING = ("Mapping.Modify", "Mapping.Use", "Mapping.Audit")
_KIND = Kind(
    name="cpu-model",
    required=frozenset(("reported-model",)),
    optional=frozenset(
        ("cputype", "hidden", "hv-vendor-id", "flags", "guest-phys-bits", "phys-bits", "level")
    ),
)


@route("GET /cluster/qemu")
def list_qemu(_call: Call) -> Any:
    """List what there is of QEMU for the whole cluster."""
    return [{"name": "cpu-flags"}, {"name": "custom-cpu-models"}]


@route("GET /cluster/qemu/cpu-flags")
def list_flags(call: Call) -> Any:
    """List the flags of CPUs with the nodes that have them; ARM has none."""
    if call.params.get("arch", "x86_64") != "x86_64":
        return []
    return [{"name": name, "supported-on": list(call.world.cluster.nodes())} for name in CPU_FLAGS]


@route("GET /cluster/qemu/custom-cpu-models")
def list_models(call: Call) -> Any:
    """List the models that the caller may see."""
    file = SectionFile(call.store, MODELS)
    return [
        {**_format_model(model), "digest": file.digest}
        for name, model in sorted(file.all().items())
        if call.may(f"/mapping/cpu/{name}", *_SEEING, any_of=True)
    ]


@route("GET /cluster/qemu/custom-cpu-models/{cputype}")
def read_model(call: Call) -> Any:
    """Answer one model, by its name with or without `custom-`."""
    file, name = SectionFile(call.store, MODELS), _name(call)
    model = file.get(name)
    if model is None:
        raise PveError(f"Custom cputype '{name}' not found")
    return {**{key: value for key, value in _format_model(model).items() if value}, "digest": file.digest}


@route("POST /cluster/qemu/custom-cpu-models")
def create_model(call: Call) -> Any:
    """Add a model."""
    name = _read_name(call)
    given = {**call.params, "cputype": f"custom-{name}"}
    with call.world.cluster.lock_file(_LOCK):
        file = SectionFile(call.store, MODELS)
        settings = _KIND.validate(given, create=True)
        if file.get(name) is not None:
            raise PveError(f"custom CPU model '{name}' already exists")
        file.put(name, settings)


@route("PUT /cluster/qemu/custom-cpu-models/{cputype}")
def update_model(call: Call) -> Any:
    """Change a model."""
    dropped = split_list(call.params.get("delete", ""))
    for fixed in ("cputype", "reported-model"):
        if fixed in dropped:
            raise PveError(f"cannot delete '{fixed}'")
    name = _read_name(call)
    given = {key: value for key, value in call.params.items() if key not in ("digest", "delete")}
    with call.world.cluster.lock_file(_LOCK):
        file = SectionFile(call.store, MODELS)
        file.check_digest(call.params.get("digest"))
        settings = _KIND.validate({**given, "cputype": f"custom-{name}"}, create=False)
        model = file.get(name)
        if model is None:
            raise PveError(f"custom CPU model '{name}' does not exist")
        file.put(name, {**_KIND.without(model, dropped, settings), **settings})


@route("DELETE /cluster/qemu/custom-cpu-models/{cputype}")
def delete_model(call: Call) -> Any:
    """Remove a model."""
    with call.world.cluster.lock_file(_LOCK):
        file, name = SectionFile(call.store, MODELS), _name(call)
        if file.get(name) is None:
            raise PveError(f"custom CPU model '{name}' does not exist")
        file.remove(name)


def _name(call: Call) -> str:
    return str(call.params["cputype"]).removeprefix("custom-")


def _read_name(call: Call) -> str:
    name = _name(call)
    if not re.fullmatch(r"[a-z][a-z0-9_-]+", name, re.IGNORECASE):
        raise PveError(f"invalid configuration ID '{name}'")
    return name


def _format_model(model: Document) -> dict[str, Any]:
    return {key: value for key, value in model.items() if key != "type"}
