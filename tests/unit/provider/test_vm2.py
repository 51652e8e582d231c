"""`proxmox_vm`: what is refused, what means the same, where it is and who may see it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.support.lab import ROOMY
from tests.support.provider_bench import Bench, Failed, bench

from stackyard import lab
from stackyard.clients import proxmox
from stackyard.provider import registry
from stackyard.provider.operations import Operations

VM = "proxmox_vm"
PLAIN: dict[str, Any] = {"node_name": "pve1", "id": 300}


@contextlib.asynccontextmanager
async def run() -> AsyncIterator[tuple[Bench, lab.Running]]:
    async with lab.start(seed=ROOMY, nodes=("pve1", "pve2")) as running, bench(running) as it:
        yield it, running


def config_of(running: lab.Running, vm_id: int = 300) -> dict[str, Any]:
    return dict(running.world.guests.all()[str(vm_id)]["config"])


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "name": ({"name": "no_underscore"}, "`name` must be a valid host name"),
    "slot": ({"cdrom": {"virtio0": {}}}, "'virtio0' is none"),
    "disc": ({"cdrom": {"ide2": {"file_id": "disc"}}}, "`cdrom.file_id` must be `cdrom`, `none` or a file"),
    "cores": ({"cpu": {"cores": 0}}, "`cpu.cores` must be 1 to 1024"),
    "whole": ({"cpu": {"cores": 1.5}}, "`cpu.cores` must be a whole number"),
    "limit": ({"cpu": {"limit": 129}}, "`cpu.limit` must be 0 to 128"),
    "flags": ({"cpu": {"flags": ["+aes"]}}, "`cpu` has `flags`, which need a `type` beside them"),
    "architecture": ({"cpu": {"architecture": "arm"}}, "must be one of aarch64, x86_64"),
    "affinity": ({"cpu": {"affinity": "all"}}, "`cpu.affinity` must be numbers"),
    "clipboard": ({"vga": {"clipboard": "spice"}}, "must be one of vnc"),
    "display": ({"vga": {"memory": 1}}, "`vga.memory` must be 4 to 512"),
    "source": ({"rng": {"source": ""}}, "`rng.source` must not be empty"),
    "tags": ({"tags": ["a", " "]}, "`tags` must not have blank tags"),
    "timeouts": ({"timeouts": {"create": "soon"}}, "`timeouts.create` must be a duration"),
}


@pytest.mark.parametrize("which", REFUSED)
async def test_a_wrong_value_is_refused_before_anything_is_planned(which: str) -> None:
    more, message = REFUSED[which]
    async with run() as (it, _):
        with pytest.raises(Failed, match=message):
            it.plan(VM, **PLAIN, **more)


SPELLED: dict[str, dict[str, Any]] = {
    "empty-parts": {"cpu": {}, "vga": {}, "rng": {}, "cdrom": {}, "tags": []},
    "no-template": {"template": False},
    "blank-lines": {"description": "one\ntwo\n\n"},
    "empty-description": {"description": ""},
    "no-flags": {"cpu": {"type": "host", "flags": []}},
    "zeros": {"cpu": {"limit": 0, "numa": False}, "rng": {"source": "/dev/random", "max_bytes": 0}},
    "fraction": {"cpu": {"limit": 0.5}},
    "no-id": {"id": None},
}


@pytest.mark.parametrize("which", SPELLED)
async def test_what_proxmox_spells_otherwise_is_no_change(which: str) -> None:
    config = {**PLAIN, **SPELLED[which]}
    async with run() as (it, _):
        await it.apply(VM, **config)
        assert await it.is_settled(VM, **config)


async def test_everything_that_is_taken_out_is_unset_but_what_proxmox_gave_it() -> None:
    parts = {
        "name": "web",
        "description": "it",
        "cpu": {"cores": 2, "type": "host", "numa": True},
        "rng": {"source": "/dev/urandom"},
        "vga": {"type": "virtio"},
        "cdrom": {"ide2": {}, "scsi3": {"file_id": "none"}},
        "tags": ["a"],
    }
    async with run() as (it, running):
        await it.apply(VM, **PLAIN)
        bare = config_of(running)
        await it.apply(VM, **PLAIN, **parts)
        assert config_of(running).keys() - bare.keys() == {
            *("name", "description", "cores", "cpu", "numa", "rng0", "vga", "ide2", "scsi3", "tags")
        }
        await it.apply(VM, **PLAIN)
        assert config_of(running).keys() == bare.keys()


async def test_a_template_is_another_vm_and_no_template_is_the_same() -> None:
    async with run() as (it, _):
        await it.apply(VM, **PLAIN)
        assert it.plan(VM, **PLAIN, template=False).replace == []
        assert it.plan(VM, **PLAIN, template=True).replace == [("template",)]
        assert it.plan(VM, **{**PLAIN, "id": 301}).replace == [("id",)]


async def test_another_node_is_a_move_and_a_vm_that_was_moved_is_found() -> None:
    async with run() as (it, running):
        await it.apply(VM, **PLAIN)
        await it.apply(VM, **{**PLAIN, "node_name": "pve2"})
        assert running.world.guests.all()["300"]["node"] == "pve2"
        client = it.session.client
        upid = await client.post("/nodes/pve2/qemu/300/migrate", {"target": "pve1"})
        await proxmox.wait_for(client, upid, timeout_s=10)
        state = await it.refresh(VM)
        assert state is not None
        assert state["node_name"] == "pve1"
        await it.remove(VM)
        assert dict(running.world.guests.all()) == {}


async def test_a_number_that_is_taken_is_named_with_who_has_it() -> None:
    async with run() as (it, _):
        await it.apply(
            "proxmox_virtual_environment_vm", node_name="pve2", vm_id=300, name="db", started=False
        )
        with pytest.raises(Failed, match=r"The vm id 300 is taken: VM db on pve2 has it"):
            await it.apply(VM, **PLAIN)


@pytest.mark.parametrize(
    ("stop", "call"), [(False, "/status/shutdown"), (True, "/status/stop")], ids=["shut-down", "stopped"]
)
async def test_a_vm_that_runs_is_ended_as_it_says_and_removed_with_what_it_says(
    stop: bool, call: str
) -> None:
    config = {
        **PLAIN,
        "stop_on_destroy": stop,
        "purge_on_destroy": False,
        "delete_unreferenced_disks_on_destroy": False,
        "timeouts": {"delete": "20s"},
    }
    async with run() as (it, running):
        await it.apply(VM, **config)
        upid = await it.session.client.post("/nodes/pve1/qemu/300/status/start")
        await proxmox.wait_for(it.session.client, upid, timeout_s=10)
        running.world.journal.clear()
        await it.remove(VM)
        calls = [one for one in running.world.journal.entries() if one.method in ("POST", "DELETE")]
        assert [one.path for one in calls] == [f"/nodes/pve1/qemu/300{call}", "/nodes/pve1/qemu/300"]
        assert calls[1].parameters == {"purge": "0", "destroy-unreferenced-disks": "0"}


@pytest.mark.parametrize("kind", [VM, "proxmox_virtual_environment_vm"])
async def test_a_vm_that_may_not_be_seen_is_an_error_and_one_that_is_gone_is_gone(kind: str) -> None:
    async with run() as (it, running):
        number = {"id": 300} if kind == VM else {"vm_id": 300, "started": False}
        await it.apply(kind, node_name="pve1", **number)
        client = it.session.client
        await client.post("/access/users", {"userid": "weak@pve", "password": "weak-password"})
        weak = proxmox.Login(username="weak@pve", password="weak-password")
        async with bench(running, credentials=weak) as other:
            other.states = dict(it.states)
            with pytest.raises(Failed, match=r"403 .*VM\.Audit"):
                await other.refresh(kind)
            with pytest.raises(Failed, match="403"):
                await other.remove(kind)
        await proxmox.wait_for(client, await client.delete("/nodes/pve1/qemu/300"), timeout_s=10)
        assert await it.refresh(kind) is None


@pytest.mark.parametrize("given", ["300", "pve1/", "pve1/web", "pve1/0", "/300"])
async def test_an_id_of_another_form_is_not_imported(given: str) -> None:
    async with run() as (it, _):
        with pytest.raises(Failed, match="form NODE/NUMBER"):
            await it.adopt(VM, given)


async def test_the_data_source_says_so_when_there_is_no_such_vm() -> None:
    async with run() as (it, _):
        known = registry.load().data_sources[VM]
        read = Operations(it.session).read_data
        result = await read(known, VM, {"node_name": "pve1", "id": 300})
        assert [one.detail.partition("\n")[0] for one in result.problems] == [
            "There is no VM 300 on node pve1."
        ]
