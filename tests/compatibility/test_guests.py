"""Configurations of Proxmox become the same attributes, parameters, models and resources as before.

The configurations are those of the guests of the lab's seeds, and some that have every key.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from tests.compatibility.golden import FIXTURES, compare

from stackyard.desired import Container, Desired, Guest, Vm
from stackyard.path.importing.container import translate_container
from stackyard.path.importing.vm import translate_vm
from stackyard.provider.resources.container.describe import describe
from stackyard.provider.resources.container.properties import properties, render_creation
from stackyard.provider.resources.vm.blocks import PriorState
from stackyard.provider.resources.vm.disks import new_disk
from stackyard.provider.resources.vm.drives import cdrom_params, efi_text, tpm_text
from stackyard.provider.resources.vm.initialization import cloud_init_drive
from stackyard.provider.resources.vm.params import whole_params
from stackyard.provider.resources.vm.read import describe_vm
from stackyard.render import Provider, render

Json = dict[str, Any]


def vm_parameters(state: Json, vm_id: int) -> Json:
    drives = {disk["interface"]: new_disk(disk) for disk in state["disk"]}
    firmware = {"efidisk0": efi_text(state), "tpmstate0": tpm_text(state)}
    told = {
        block["interface"]: cloud_init_drive(block)
        for block in state["initialization"]
        if block.get("interface")
    }
    return {**whole_params(state, vm_id), **drives, **firmware, **cdrom_params(state), **told}


def container_parameters(state: Json, _vm_id: int) -> Json:
    return {**properties(state), **render_creation(state)}


def described(config: Mapping[str, Any], kind: str, vm_id: int) -> Json:
    if kind == "qemu":
        shown = PriorState(known={}, is_clone=False)
        state = describe_vm(config, shown, vm_id)
        return {**state, "efi_disk": [{**efi, "file_format": "raw"} for efi in state["efi_disk"]]}
    return describe(config, {"id": str(vm_id), "node_name": "pve1"})


def attempt(make: Callable[[], Json]) -> Json | str:
    try:
        return make()
    except ValueError as err:
        return f"{type(err).__name__}: {err}"


def resources_of(guest: Guest) -> Json:
    desired = Desired(
        vms=(guest,) if isinstance(guest, Vm) else (),
        containers=(guest,) if isinstance(guest, Container) else (),
    )
    resources: Json = {}
    for content in render(desired, Provider(), scope="env/x/pve1").files.values():
        for kind, named in (json.loads(content).get("resource") or {}).items():
            resources.setdefault(kind, {}).update(named)
    return resources


def answer(row: Json, config: Json) -> Json:
    is_vm, vm_id = row["type"] == "qemu", row["vmid"]
    found = (translate_vm if is_vm else translate_container)(row, config)
    state = attempt(lambda: described(config, row["type"], vm_id))
    parameters = None
    if isinstance(state, dict):
        sent = (vm_parameters if is_vm else container_parameters)(state, vm_id)
        parameters = {name: value for name, value in sent.items() if value is not None}
    guest = found.guest
    return {
        "attributes": state,
        "parameters": parameters,
        "imported": None if guest is None else guest.model_dump(mode="json", exclude_defaults=True),
        "lacks": {lack.key: lack.text for lack in found.lacks},
        "notes": list(found.notes),
        "rendered": None if guest is None else resources_of(guest),
    }


def test_a_configuration_is_read_written_imported_and_rendered_as_before() -> None:
    kept = json.loads((FIXTURES / "guests" / "configurations.json").read_text())
    answers = {f"{one['seed']}-{one['row']['vmid']}": answer(one["row"], one["config"]) for one in kept}
    compare("guests/answers.json", answers)
