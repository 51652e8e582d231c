"""The whole configuration of one target."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import orjson

from stackyard.desired import Container, Secret
from stackyard.render.container import container_resource
from stackyard.render.files import file_resources
from stackyard.render.ha import ha_resources
from stackyard.render.names import label
from stackyard.render.networks import network_resources
from stackyard.render.objects import object_resources
from stackyard.render.protection import protection_resources
from stackyard.render.references import CONTAINER, POOL, VM, References, address_of
from stackyard.render.terms import Expression, Json, expression, literal, present, variable
from stackyard.render.userdata import with_data_files
from stackyard.render.vm import vm_resource

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pydantic import BaseModel

    from stackyard.desired import Desired

__all__ = ["Provider", "Rendered", "Variable", "render", "render_guests"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """Which provider the configuration asks for; how to reach Proxmox comes from its environment."""

    source: str = "bpg/proxmox"
    version: str = "~> 0.111"
    # The user that uploads snippets over SSH, and where each node answers; nothing secret.
    ssh_user: str | None = None
    ssh_nodes: tuple[tuple[str, str, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A variable of the configuration, and the secret that it brings."""

    name: str
    secret: Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """Files for a work directory, by name, and what has to come with them.

    Attributes:
        files: The files.
        variables: The variables that have to be given.
        links: Folders of modules, by the names of the links to them.
        linked: Fingerprints of what is behind the links, by name.
    """

    files: Mapping[str, bytes]
    variables: tuple[Variable, ...]
    links: Mapping[str, Path] = field(default_factory=dict)
    linked: Mapping[str, str] = field(default_factory=dict)


def render(desired: Desired, provider: Provider | None = None, *, scope: str = "") -> Rendered:
    """Return the configuration of a model: one file of OpenTofu JSON.

    Args:
        desired: The model.
        provider: Which provider it asks for.
        scope: Tells files that are made for this model from those of others on the same storage.
    """
    whole = with_data_files(desired, scope)
    variables = tuple(_variables(whole))
    document = {
        "terraform": _settings(provider or Provider()),
        "provider": {"proxmox": _provider(provider or Provider())},
        "variable": {v.name: {"type": "string", "sensitive": True} for v in variables},
        "resource": _resources(whole),
        "output": {"guests": {"value": render_guests(whole)}},
    }
    kept = {key: value for key, value in document.items() if value}
    text = orjson.dumps(kept, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE)
    return Rendered(files={"main.tf.json": text}, variables=variables)


def _settings(provider: Provider) -> Json:
    return {"required_providers": {"proxmox": {"source": provider.source, "version": provider.version}}}


def _provider(provider: Provider) -> Json:
    if provider.ssh_user is None:
        return {}
    nodes = [{"name": name, "address": address, "port": port} for name, address, port in provider.ssh_nodes]
    return {"ssh": [present({"username": provider.ssh_user, "node": nodes})]}


def _resources(desired: Desired) -> dict[str, dict[str, Json]]:
    references = References(desired)
    resources: dict[str, dict[str, Json]] = {
        VM: {label(vm.key): vm_resource(vm, references) for vm in desired.vms},
        CONTAINER: {label(ct.key): container_resource(ct, references) for ct in desired.containers},
        POOL: {
            label(pool.name): present({"pool_id": pool.name, "comment": pool.comment})
            for pool in desired.pools
        },
        **file_resources(desired),
        **network_resources(desired),
        **ha_resources(desired),
        **protection_resources(desired),
    }
    for kind, objects in object_resources(desired).items():
        # Networks and pools of a site are beside those of the files of its clusters and nodes.
        resources[kind] = {**resources.get(kind, {}), **objects}
    return {kind: found for kind, found in resources.items() if found}


def render_guests(desired: Desired) -> dict[str, Json]:
    """Return what everyone downstream asks about the guests."""
    guests: dict[str, Json] = {}
    for guest in desired.guests:
        address = address_of(guest)
        is_container = isinstance(guest, Container)
        # A container has its addresses by interface, a virtual machine a list for each.
        addresses = f"values({address}.ipv" if is_container else f"flatten({address}.ipv"
        ending = ")" if is_container else "_addresses)"
        guests[str(literal(guest.key))] = {
            "name": literal(guest.name),
            "type": "ct" if is_container else "vm",
            "node": expression(f"{address}.node_name"),
            "vm_id": expression(f"{address}.vm_id"),
            "ipv4": _useful(f"{addresses}4{ending}", "127."),
            "ipv6": _useful(f"{addresses}6{ending}", "::1"),
        }
    return guests


def _useful(addresses: str, loopback: str) -> Expression:
    """Return the addresses that others can use: none for a guest whose making failed and that has no such."""
    return expression(f'[for a in try({addresses}, []) : a if !startswith(a, "{loopback}")]')


def _variables(desired: Desired) -> Iterator[Variable]:
    names = sorted({secret.secret for secret in _secrets(desired)})
    for name in names:
        secret = Secret(secret=name)
        yield Variable(name=variable(secret), secret=secret)


def _secrets(value: BaseModel | object) -> Iterator[Secret]:
    """Return every secret that a value names, however deep."""
    if isinstance(value, Secret):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _secrets(item)
    elif isinstance(value, dict):
        yield from _secrets(tuple(value.values()))
    elif hasattr(value, "model_fields_set"):
        # Only what was set can hold a secret: no default does.
        for field in value.model_fields_set:
            yield from _secrets(getattr(value, field))
