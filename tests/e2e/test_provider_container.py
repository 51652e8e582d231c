"""Containers with the built-in provider: made, changed, brought back after drift, imported, removed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.engine import real_engine, usual_engine
from tests.support.lab import ROOMY
from tests.support.provider import Stack, driven, lab_api
from tests.support.provider_container import (
    CHANGES,
    CREATED,
    REPLACED,
    TEMPLATE,
    container,
    plant_templates,
    stack_of,
)
from tests.unit.desired.test_desired import FULL

from stackyard import lab
from stackyard.clients import proxmox
from stackyard.desired import Desired
from stackyard.engine.version import Engine, Flavour
from stackyard.render import render

__all__ = ["usual_engine"]

pytestmark = pytest.mark.timeout(300)
ADDRESS = "proxmox_virtual_environment_container"


@pytest.fixture
def tofu() -> Engine:
    return real_engine(Flavour.TOFU)


@pytest.fixture
def running() -> Iterator[lab.Running]:
    with lab.running(seed=ROOMY, nodes=("pve1", "pve2"), ssh_port=0) as it:
        plant_templates(it)
        yield it


def guests(running: lab.Running) -> dict[str, dict[str, Any]]:
    """Return the guests of a lab by number."""
    return running.on_loop(lambda: {key: dict(one) for key, one in running.world.guests.all().items()})


def test_a_container_is_made_changed_and_removed(
    engine: Engine, running: lab.Running, tmp_path: Path
) -> None:
    async def scenario(stack: Stack) -> None:
        stack.write(container("web", None, 'description = "first"\nmemory { dedicated = 256 }'))
        await stack.init()
        assert "1 to add" in await stack.plan(status=2)
        await stack.apply()
        values = await stack.values(f"{ADDRESS}.web")
        assert (values["id"], values["vm_id"], values["description"]) == ("100", 100, "first\n")
        assert values["ipv4"]["eth0"]
        made = guests(running)["100"]
        assert (made["status"], made["config"]["memory"], made["config"]["hostname"]) == (
            "running",
            256,
            "usual",
        )

        stack.write(container("web", None, 'description = "second"\nmemory { dedicated = 512 }'))
        assert "0 added, 1 changed, 0 destroyed" in await stack.apply()
        config = guests(running)["100"]["config"]
        assert (config["memory"], config["description"].strip()) == (512, "second")
        assert config["net0"] == made["config"]["net0"]
        # Proxmox changes the memory of a container while it runs.
        calls = running.on_loop(lambda: [entry.path for entry in running.world.journal.entries()])
        assert not any(path.endswith(("/status/reboot", "/status/shutdown")) for path in calls)
        await stack.destroy()
        assert guests(running) == {}

    driven(engine, running, tmp_path, scenario)


def test_every_kind_of_container_is_settled_once_made(
    tofu: Engine, running: lab.Running, tmp_path: Path
) -> None:
    async def scenario(stack: Stack) -> None:
        cases = {name: text for family in CREATED.values() for name, text in family.items()}
        # What the real bpg/proxmox plans to change for ever.
        cases["unsized"] = 'mount_point {\n volume = "local-lvm:1"\n path = "/a"\n}'
        cases["other_unit"] = 'mount_point {\n volume = "local-lvm"\n size = "1024M"\n path = "/a"\n}'
        cases["small_letters"] = 'network_interface {\n name = "eth0"\n mac_address = "bc:24:11:ab:cd:ef"\n}'
        cases["nameless"] = 'initialization {\n dns { domain = "example.org" }\n}'
        cases["off"] = 'network_interface {\n name = "eth0"\n enabled = false\n}'
        cases["holes"] = (
            'network_interface { name = "eth0" }\nnetwork_interface { name = "eth1" }\ninitialization {\n'
            ' ip_config {}\n ip_config {\n ipv4 { address = "dhcp" }\n}\n}'
        )
        stack.write(stack_of(cases))
        await stack.init()
        await stack.apply()
        assert len(guests(running)) == len(cases)
        holes = guests(running)[str(199 + len(cases))]["config"]
        assert ("ip=" in holes["net0"], "ip=" in holes["net1"]) == (False, True)

    driven(tofu, running, tmp_path, scenario)


def test_every_change_is_made_in_place_and_lasts(tofu: Engine, running: lab.Running, tmp_path: Path) -> None:
    # The real bpg/proxmox overlooks these, or makes the container a second time for another pool.
    more = {
        "pool": ("", 'pool_id = "apps"'),
        "pool_away": ('pool_id = "apps"', ""),
        "tags_away": ('tags = ["a"]', ""),
        "options_away": (
            'disk {\n datastore_id = "local-lvm"\n size = 2\n mount_options = ["noatime"]\n}',
            'disk {\n datastore_id = "local-lvm"\n size = 2\n}',
        ),
        "device_away": ('device_passthrough { path = "/dev/fuse" }', ""),
        "turned_off": ("", 'network_interface {\n name = "eth0"\n enabled = false\n}\nstarted = false'),
        "line_ends": ("", 'description = " two\\r\\nlines  "'),
    }

    async def scenario(stack: Stack) -> None:
        stack.write(
            stack_of({**{n: c.before for n, c in CHANGES.items()}, **{n: m[0] for n, m in more.items()}})
        )
        await stack.init()
        await stack.apply()
        stack.write(
            stack_of({**{n: c.after for n, c in CHANGES.items()}, **{n: m[1] for n, m in more.items()}})
        )
        changed = len(CHANGES) + len(more)
        assert f"0 added, {changed} changed, 0 destroyed" in await stack.apply()
        number = {name: str(200 + i) for i, name in enumerate([*CHANGES, *more])}
        found = {name: guests(running)[number[name]]["config"] for name in number}
        assert "size=5G" in found["disk_grows"]["rootfs"]
        assert "tags" not in found["tags_away"]
        assert "mountoptions" not in found["options_away"]["rootfs"]
        assert "dev0" not in found["device_away"]
        assert "net0" not in found["turned_off"]
        assert "net1" not in found["interface_away"]
        assert found["cpu_away"]["cores"] == 1
        async with lab_api(running) as api:
            (pool,) = await api.get("/pools", {"poolid": "apps"})
            assert [member["vmid"] for member in pool["members"]] == [int(number["pool"])]

    driven(tofu, running, tmp_path, scenario)


def test_what_cannot_be_changed_in_place_is_made_anew(
    tofu: Engine, running: lab.Running, tmp_path: Path
) -> None:
    async def scenario(stack: Stack) -> None:
        stack.write(stack_of({name: case.before for name, case in REPLACED.items()}))
        await stack.init()
        await stack.apply()
        stack.write(stack_of({name: case.after for name, case in REPLACED.items()}))
        said = await stack.plan(status=2)
        assert set(re.findall(rf"{ADDRESS}\.(\w+) must be replaced", said)) == set(REPLACED)

    driven(tofu, running, tmp_path, scenario)


DRIFT: dict[str, dict[str, Any]] = {
    "description": {"description": "by hand"},
    "tags": {"tags": "hand"},
    "onboot": {"onboot": 0},
    "protection": {"protection": 1},
    "cores": {"cores": 8},
    "memory": {"memory": 99},
    "swap": {"swap": 99},
    "console": {"cmode": "shell"},
    "tty": {"tty": 5},
    "features": {"features": "nesting=1"},
    "startup": {"startup": "order=9"},
    "hostname": {"hostname": "hand"},
    "nameserver": {"nameserver": "192.0.2.1"},
    "searchdomain": {"searchdomain": "example.com"},
    "interface": {"net0": "name=eth0,bridge=vmbr0,ip=dhcp,tag=9"},
    "address": {"net0": "name=eth0,bridge=vmbr0,ip=192.0.2.2/24"},
    "second_interface": {"net1": "name=eth1,bridge=vmbr0"},
    "ostype": {"ostype": "ubuntu"},
    "environment": {"env": "A=1"},
    "entrypoint": {"entrypoint": "/bin/sh"},
    "cpulimit": {"cpulimit": 2},
    "cpuunits": {"cpuunits": 77},
    "device": {"dev0": "path=/dev/fuse"},
}


def test_drift_of_every_attribute_is_seen_and_corrected(
    tofu: Engine, running: lab.Running, tmp_path: Path
) -> None:
    async def scenario(stack: Stack) -> None:
        text = "unprivileged = true\ncpu { cores = 2 }\nmemory {}\nconsole {}\nfeatures {}"
        stack.write(stack_of(dict.fromkeys([*DRIFT, "stopped"], text)))
        await stack.init()
        await stack.apply()
        before = sorted(guests(running), key=int)
        # Some of it only root may change, and no token is root.
        root = proxmox.Login(username=running.username, password=running.password)
        trust = proxmox.Trust(fingerprint=running.fingerprint)
        connection = proxmox.Connection(endpoint=running.url, credentials=root, trust=trust)
        async with proxmox.Client(connection) as api:
            for vm_id, change in zip(before, DRIFT.values(), strict=False):
                await api.put(f"/nodes/pve1/lxc/{vm_id}/config", change)
            await api.post(f"/nodes/pve1/lxc/{before[-1]}/status/stop")
        said = await stack.plan(status=2)
        seen = set(re.findall(rf"{ADDRESS}\.(\w+) will be updated in-place", said))
        # What Proxmox chose itself is nobody's to correct.
        assert seen == {*DRIFT, "stopped"} - {"cpuunits"}
        await stack.apply()
        assert {one["status"] for one in guests(running).values()} == {"running"}
        for name, vm_id in zip(DRIFT, before, strict=False):
            config = guests(running)[vm_id]["config"]
            assert name == "cpuunits" or not DRIFT[name].items() <= config.items(), name

    driven(tofu, running, tmp_path, scenario)


def test_a_container_that_somebody_moved_is_not_made_twice(
    tofu: Engine, running: lab.Running, tmp_path: Path
) -> None:
    async def scenario(stack: Stack) -> None:
        stack.write(container("web", 200, "started = false"))
        await stack.init()
        await stack.apply()
        async with lab_api(running) as api:
            upid = await api.post("/nodes/pve1/lxc/200/migrate", {"target": "pve2", "target-storage": "1"})
            await api.get(f"/nodes/pve1/tasks/{upid}/status")
        assert guests(running)["200"]["node"] == "pve2"
        assert "must be replaced" in await stack.plan(status=2)
        stack.write(container("web", 200, 'node_name = "pve2"\nstarted = false'))
        await stack.unchanged()

    driven(tofu, running, tmp_path, scenario)


def test_a_container_removed_by_hand_is_made_again(
    tofu: Engine, running: lab.Running, tmp_path: Path
) -> None:
    async def scenario(stack: Stack) -> None:
        stack.write(container("web", 200, "started = false"))
        await stack.init()
        await stack.apply()
        async with lab_api(running) as api:
            await api.delete("/nodes/pve1/lxc/200")
        assert "1 to add" in await stack.plan(status=2)

    driven(tofu, running, tmp_path, scenario)


def test_an_imported_container_needs_no_change(tofu: Engine, running: lab.Running, tmp_path: Path) -> None:
    async def scenario(stack: Stack) -> None:
        account = 'user_account {\n password = "secret-enough"\n}\n'
        address = 'ip_config {\n ipv4 { address = "dhcp" }\n}'
        text = f'initialization {{\n hostname = "web"\n {account} {address}\n}}'
        mount = 'mount_point {\n volume = "local-lvm"\n size = "1G"\n path = "/data"\n}'
        stack.write(container("web", 200, f'{text}\n{mount}\ncpu {{ cores = 3 }}\ntags = ["a"]'))
        await stack.init()
        await stack.apply()
        await stack.run("state", "rm", f"{ADDRESS}.web")
        said = await stack.run("import", "-input=false", f"{ADDRESS}.web", "200", status=1)
        assert "The id of a container has the form NODE/VMID" in said
        await stack.run("import", "-input=false", f"{ADDRESS}.web", "pve1/200")
        await stack.unchanged()

    driven(tofu, running, tmp_path, scenario)


def test_clones_of_one_source_are_all_made(tofu: Engine, running: lab.Running, tmp_path: Path) -> None:
    source = f"clone {{ vm_id = {ADDRESS}.source.vm_id }}"
    address = 'ip_config {\n ipv4 { address = "10.0.0.3/24" }\n}'
    copies = {
        "plain": source,
        "described": f'{source}\ndescription = "mine"\ntags = ["x"]\nstart_on_boot = false',
        "sized": f"{source}\ndisk {{ size = 5 }}",
        "addressed": f'{source}\ninitialization {{\n hostname = "a"\n {address}\n}}',
        "mounted": f'{source}\nmount_point {{\n volume = "local-lvm"\n size = "1G"\n path = "/a"\n}}',
        "bare": f'{source}\nfeatures {{}}\nnetwork_interface {{ name = "eth7" }}',
        "elsewhere": f'clone {{\n vm_id = {ADDRESS}.source.vm_id\n datastore_id = "local"\n}}',
        "template": f"{source}\ntemplate = true\nstarted = false",
    }
    text = (
        'started = false\ndescription = "the source"\nfeatures { nesting = true }\nstartup { order = 3 }\n'
        'environment_variables = { A = "1" }\nnetwork_interface { name = "eth0" }\n'
        'network_interface { name = "eth1" }'
    )

    async def scenario(stack: Stack) -> None:
        stack.write(
            container("source", 200, text) + "".join(container(n, None, t) for n, t in copies.items())
        )
        await stack.init()
        await stack.apply()
        number = {name: (await stack.values(f"{ADDRESS}.{name}"))["vm_id"] for name in copies}
        assert len(set(number.values())) == len(copies)
        found = {name: guests(running)[str(number[name])]["config"] for name in copies}
        assert found["plain"]["description"].strip() == "the source"
        assert found["described"]["description"].strip() == "mine"
        assert "size=5G" in found["sized"]["rootfs"]
        assert "ip=10.0.0.3/24" in found["addressed"]["net0"]
        assert "net1" not in found["bare"]
        assert "features" not in found["bare"]
        assert found["elsewhere"]["rootfs"].startswith("local:")
        assert found["template"]["template"] == 1

    driven(tofu, running, tmp_path, scenario)


def test_a_taken_number_is_refused_by_name(tofu: Engine, running: lab.Running, tmp_path: Path) -> None:
    async def scenario(stack: Stack) -> None:
        stack.write(container("one", 200, "started = false"))
        await stack.init()
        await stack.apply()
        await stack.run("state", "rm", f"{ADDRESS}.one")
        said = await stack.run("apply", "-auto-approve", "-input=false", "-no-color", status=1)
        assert "E-PROVIDER-VM-ID-TAKEN" in said
        assert list(guests(running)) == ["200"]

    driven(tofu, running, tmp_path, scenario)


WRONG = {
    "operating_system": ("clone {}", "vm_id"),
    "cores": ("cpu { cores = 0 }", "cpu.cores"),
    "hostname": ('initialization { hostname = "-no-" }', "initialization.hostname"),
    "environment": ('environment_variables = { "A-B" = "1" }', "environment_variables"),
    "account": (
        'clone { vm_id = 100 }\ninitialization {\n user_account {\n password = "x"\n}\n}',
        "user_account",
    ),
    "mac": ('network_interface {\n name = "eth0"\n mac_address = "no"\n}', "network_interface.mac_address"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_value_is_named_before_anything_is_done(
    tofu: Engine, running: lab.Running, tmp_path: Path, name: str
) -> None:
    async def scenario(stack: Stack) -> None:
        text, named = WRONG[name]
        stack.write(container("web", 200, text))
        await stack.init()
        assert named in await stack.plan(status=1)

    driven(tofu, running, tmp_path, scenario)


def test_the_container_of_a_rendered_model_is_made(
    tofu: Engine, running: lab.Running, tmp_path: Path
) -> None:
    model = {
        "containers": [{**FULL["containers"][0], "template": TEMPLATE, "depends_on": []}],
    }

    async def scenario(stack: Stack) -> None:
        for name, data in render(Desired.model_validate(model)).files.items():
            (stack.folder / name).write_bytes(data)
        await stack.init()
        await stack.apply()
        made = guests(running)["100"]
        assert (made["node"], made["status"], made["config"]["hostname"]) == ("pve2", "running", "dns")
        assert made["config"]["mp0"].endswith("mp=/srv,size=4G")
        await stack.destroy()

    driven(tofu, running, tmp_path, scenario)
