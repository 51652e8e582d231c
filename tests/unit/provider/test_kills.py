"""A provider that is killed at any moment of making something: the next run completes it, once and whole."""

from __future__ import annotations

import asyncio
import difflib
import fnmatch
import hashlib
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.kill_moments import Moment, changes_something, choose_some
from tests.support.lab import ROOMY
from tests.support.path_faults import Spot
from tests.support.path_runs import control, watch_calls
from tests.support.provider import lab_api
from tests.support.provider_bench import Failed, bench
from tests.support.provider_container import TEMPLATE, plant_templates
from tests.support.provider_killed import Making, Sort
from tests.support.web import served

from pvelab.world.storage.contents import put_file
from stackyard import lab
from stackyard.base import serving
from stackyard.clients import proxmox

VM = "proxmox_virtual_environment_vm"
CONTAINER = "proxmox_virtual_environment_container"
FILE = "proxmox_virtual_environment_file"
DOWNLOAD = "proxmox_download_file"
# Stands for the server that the tests of a module share.
SOURCE = "http://source"
GIB = 2**30
GIVEN = serving.make_certificate(["one.example.com"])
# How many moments of each sort a soak run takes.
SOAK_KILLS = 12
IMAGE = "local:import/a.qcow2"
ISO_IMAGE = "local:iso/a.img"

USUAL: dict[str, Any] = {
    "node_name": "pve1",
    "name": "web",
    "agent": [{"enabled": True, "timeout": "20s"}],
    "network_device": [{"bridge": "vmbr0"}],
    "initialization": [{"datastore_id": "local-lvm", "ip_config": [{"ipv4": [{"address": "dhcp"}]}]}],
}
CLONE: dict[str, Any] = {**USUAL, "vm_id": 300, "name": "copy", "cpu": [{"cores": 2}]}
BOOT = {"interface": "scsi0", "size": 8, "datastore_id": "local-lvm"}
USUAL_CONTAINER: dict[str, Any] = {
    "node_name": "pve1",
    "vm_id": 400,
    "description": "made with care",
    "disk": [{"datastore_id": "local-lvm", "size": 1}],
    "initialization": [{"hostname": "made", "ip_config": [{"ipv4": [{"address": "dhcp"}]}]}],
    "network_interface": [{"name": "eth0"}],
    "operating_system": [{"template_file_id": TEMPLATE, "type": "debian"}],
}
CLONED_CONTAINER: dict[str, Any] = {
    "node_name": "pve1",
    "vm_id": 401,
    "disk": [{"datastore_id": "local-lvm", "size": 3}],
    "initialization": [{"hostname": "copy"}],
    "memory": [{"dedicated": 700}],
}
PLACE = {"node_name": "pve1", "datastore_id": "local"}
SNIPPET = (
    FILE,
    {
        **PLACE,
        "source_raw": [{"data": "#cloud-config", "file_name": "user.yaml"}],
    },
)


def one(type_name: str, **config: Any) -> Sort:
    return Sort(steps=((type_name, config),))


SORTS: dict[str, Sort] = {
    "image": one(VM, **USUAL, vm_id=300, disk=[{**BOOT, "import_from": IMAGE}]),
    "unnumbered": one(VM, **USUAL, disk=[{**BOOT, "file_id": IMAGE}]),
    "iso image": one(VM, **USUAL, vm_id=300, disk=[{**BOOT, "file_id": ISO_IMAGE}]),
    "many disks": one(
        VM,
        **USUAL,
        vm_id=300,
        pool_id="apps",
        bios="ovmf",
        efi_disk=[{"datastore_id": "local-lvm"}],
        tpm_state=[{"datastore_id": "local-lvm"}],
        cdrom=[{"interface": "ide3"}],
        disk=[
            {**BOOT, "import_from": IMAGE},
            {**BOOT, "interface": "scsi1", "file_id": ISO_IMAGE},
            {**BOOT, "interface": "virtio0", "size": 2},
        ],
    ),
    "full clone": one(
        VM,
        **CLONE,
        clone=[{"vm_id": 900, "full": True}],
        pool_id="apps",
        disk=[{**BOOT, "datastore_id": "local"}, {**BOOT, "interface": "scsi1", "size": 2}],
    ),
    "linked clone": one(VM, **CLONE, clone=[{"vm_id": 900, "full": False}], disk=[BOOT]),
    "clone with iso image": one(
        VM, **CLONE, clone=[{"vm_id": 900}], disk=[BOOT, {**BOOT, "interface": "scsi1", "file_id": ISO_IMAGE}]
    ),
    "clone elsewhere": one(
        VM, **{**CLONE, "node_name": "pve2"}, clone=[{"vm_id": 900, "node_name": "pve1"}], disk=[BOOT]
    ),
    "template": one(
        VM, **USUAL, vm_id=300, started=False, template=True, disk=[{**BOOT, "import_from": IMAGE}]
    ),
    "container": one(
        CONTAINER,
        **USUAL_CONTAINER,
        pool_id="apps",
        mount_point=[{"volume": "local-lvm", "size": "1G", "path": "/data"}],
    ),
    "full container clone": one(CONTAINER, **CLONED_CONTAINER, clone=[{"vm_id": 901, "full": True}]),
    "linked container clone": one(CONTAINER, **CLONED_CONTAINER, clone=[{"vm_id": 902, "full": False}]),
    "files": Sort(steps=(SNIPPET,)),
    "download": one(
        DOWNLOAD,
        node_name="pve1",
        datastore_id="local",
        content_type="iso",
        file_name="b.img",
        url=f"{SOURCE}/b.img",
        checksum=hashlib.sha256(b"image").hexdigest(),
        checksum_algorithm="sha256",
    ),
    "unchecked download": one(
        DOWNLOAD, **PLACE, content_type="iso", file_name="b.img", url=f"{SOURCE}/b.img"
    ),
    "kept upload": one(
        FILE,
        **PLACE,
        content_type="iso",
        source_raw=[{"data": "image", "file_name": "b.img"}],
        overwrite=False,
    ),
    "kept snippet": one(FILE, **{**SNIPPET[1], "overwrite": False}),
    "pool": one("proxmox_virtual_environment_pool", pool_id="more", comment="of them"),
    "network": one("proxmox_network_linux_bridge", node_name="pve1", name="vmbr9", vlan_aware=True),
    "zone": one("proxmox_sdn_zone_simple", id="zone", nodes=["pve1"]),
    "ha": one("proxmox_haresource", resource_id="vm:900", state="stopped"),
    "backup job": one(
        "proxmox_backup_job",
        id="nightly",
        schedule="*-*-* 02:00",
        storage="local",
        vmid=["900", "901"],
        prune_backups={"keep-last": "3", "keep-daily": "7"},
        fleecing={"enabled": True, "storage": "local-lvm"},
    ),
    "dns plugin": one("proxmox_acme_dns_plugin", plugin="dns", api="cf", data={"CF_Token": "x"}),
    "given certificate": one(
        "proxmox_virtual_environment_certificate",
        node_name="pve1",
        certificate=GIVEN.certificate_pem.decode(),
        private_key=GIVEN.key_pem.decode(),
    ),
    "ordered certificate": one(
        "proxmox_acme_certificate",
        node_name="pve1",
        account="default",
        domains=[{"domain": "one.example.com"}, {"domain": "two.example.com", "plugin": "standalone"}],
    ),
}
# A few of the whole matrix, for every run: a sort of guest, the call, and when the client dies.
SHORT = [
    ("image", Moment.AT_WORK, "POST", "/nodes/pve1/qemu"),
    ("image", Moment.FAILS, "POST", "/nodes/pve1/qemu"),
    ("image", Moment.DONE, "POST", "/nodes/pve1/qemu/300/status/start"),
    ("iso image", Moment.DONE, "POST", "/nodes/pve1/qemu"),
    ("iso image", Moment.AT_WORK, "SSH", "/usr/sbin/qm disk import *"),
    ("full clone", Moment.AT_WORK, "POST", "/nodes/pve1/qemu/900/clone"),
    ("clone elsewhere", Moment.AT_WORK, "POST", "/nodes/pve1/qemu/300/migrate"),
    ("container", Moment.AT_WORK, "POST", "/nodes/pve1/lxc"),
    ("linked container clone", Moment.AT_WORK, "POST", "/nodes/pve1/lxc/902/clone"),
    ("linked container clone", Moment.FAILS, "POST", "/nodes/pve1/lxc/902/clone"),
    ("files", Moment.DONE, "SFTP", "*"),
    ("download", Moment.NOT_SENT, "POST", "/nodes/pve1/storage/local/download-url"),
    ("download", Moment.AT_WORK, "POST", "/nodes/pve1/storage/local/download-url"),
    ("download", Moment.FAILS, "POST", "/nodes/pve1/storage/local/download-url"),
    ("unchecked download", Moment.AT_WORK, "POST", "/nodes/pve1/storage/local/download-url"),
    ("unchecked download", Moment.DONE, "POST", "/nodes/pve1/storage/local/download-url"),
    ("kept upload", Moment.AT_WORK, "POST", "/nodes/pve1/storage/local/upload"),
    ("kept upload", Moment.DONE, "POST", "/nodes/pve1/storage/local/upload"),
    ("kept snippet", Moment.DONE, "SFTP", "*"),
    ("backup job", Moment.DONE, "POST", "/cluster/backup"),
    ("given certificate", Moment.DONE, "POST", "/nodes/pve1/certificates/custom"),
    ("ordered certificate", Moment.AT_WORK, "POST", "/nodes/pve1/certificates/acme/certificate"),
    ("ordered certificate", Moment.FAILS, "POST", "/nodes/pve1/certificates/acme/certificate"),
]
# What writes a file, when its run is killed and in which call, and which file.
FOREIGN = [
    ("unchecked download", Moment.NOT_SENT, "POST", "local:iso/b.img"),
    ("unchecked download", Moment.DONE, "POST", "local:iso/b.img"),
    ("kept upload", Moment.NOT_SENT, "POST", "local:iso/b.img"),
    ("kept upload", Moment.DONE, "POST", "local:iso/b.img"),
    ("kept snippet", Moment.DONE, "SFTP", "local:snippets/user.yaml"),
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[lab.Running]:
    with lab.running(seed=ROOMY, nodes=("pve1", "pve2"), ssh_port=0) as running:
        prepare(running)
        yield running


def prepare(running: lab.Running) -> None:
    """Have images, templates and a pool, and guests to clone."""
    plant_templates(running)
    running.on_loop(lambda: add_images(running))

    async def make() -> None:
        stopped = {"started": False, "mount_point": []}
        sources = (
            (VM, {**USUAL, "vm_id": 900, "template": True, "started": False, "disk": [{**BOOT, "size": 1}]}),
            (CONTAINER, {**USUAL_CONTAINER, "vm_id": 901, **stopped}),
            (CONTAINER, {**USUAL_CONTAINER, "vm_id": 902, **stopped}),
        )
        for type_name, config in sources:
            async with bench(running) as it:
                await it.apply(type_name, **config)
        async with lab_api(running) as api:
            await api.post("/nodes/pve1/lxc/902/template")
            account = {"contact": "one@example.com", "directory": "https://ca.example.com/directory"}
            await proxmox.wait_for(api, await api.post("/cluster/acme/account", account), timeout_s=30)

    asyncio.run(make())
    control(running, "snapshots/begin")


def add_images(running: lab.Running) -> None:
    with running.world.store.transaction():
        for volume, content in ((IMAGE, "import"), (ISO_IMAGE, "iso")):
            running.world.volumes.add(
                volume, "pve1", 600 * 2**20, content=content, format="qcow2", virtual_size=3 * GIB
            )


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("source")
    (folder / "b.img").write_bytes(b"image")
    with served(folder) as url:
        yield url


@pytest.fixture
def making(cluster: lab.Running, source: str, tmp_path: Path, request: pytest.FixtureRequest) -> Making:
    steps = json.loads(json.dumps(SORTS[request.param].steps).replace(SOURCE, source))
    return Making(
        running=cluster,
        journal=watch_calls(cluster),
        folder=tmp_path / "journal",
        sort=Sort(steps=tuple(map(tuple, steps))),
    )


def sweep(making: Making) -> tuple[int, list[str]]:
    """Kill at moments of all calls; return how many were killed, and what went wrong."""
    spots = making.run()
    making.begin()
    making.settle()
    whole = making.picture()
    killed, problems = 0, []
    cases = [(spot, moment) for moment in Moment for spot in spots if counts(making, spot, moment)]
    for spot, moment in choose_some(cases, SOAK_KILLS):
        try:
            killed += settles(making, spot, moment, whole)
        except Exception as err:
            problems.append(f"{moment} at {spot}: {type(err).__name__} {err}")
    return killed, problems


def counts(making: Making, spot: Spot, moment: Moment) -> bool:
    """Tell whether a moment of a call is another one than the others: a read is over when it is answered."""
    if moment is Moment.FAILS:
        return spot in making.begins_task
    return moment is not Moment.AT_WORK or changes_something(spot)


def settles(making: Making, spot: Spot, moment: Moment, whole: dict[str, Any]) -> bool:
    if not making.kill(spot, moment):
        return False
    making.settle()
    found = making.picture()
    for name in whole.keys() | found.keys():
        assert found.get(name) == whole.get(name), f"{name}: {difference(whole.get(name), found.get(name))}"
    return True


def difference(wanted: Any, found: Any) -> str:
    before, after = (json.dumps(value, indent=1).splitlines() for value in (wanted, found))
    return "\n".join(difflib.unified_diff(before, after, n=1, lineterm=""))


@pytest.mark.parametrize(
    ("making", "moment", "method", "path"),
    [pytest.param(*case, id=" ".join(map(str, case))) for case in SHORT],
    indirect=["making"],
)
def test_the_next_run_completes_what_a_kill_left(
    making: Making, moment: Moment, method: str, path: str
) -> None:
    spots = making.run()
    making.begin()
    making.settle()
    whole = making.picture()
    spot = next(one for one in spots if one.method == method and fnmatch.fnmatchcase(one.path, path))
    assert settles(making, spot, moment, whole)


@pytest.mark.parametrize(("making", "moment", "method", "volume"), FOREIGN, indirect=["making"])
def test_a_file_of_somebody_else_outlives_a_killed_run(
    making: Making, moment: Moment, method: str, volume: str
) -> None:
    spots = making.run()
    spot = next(one for one in spots if one.method == method)
    assert making.kill(spot, moment)
    # A node goes on with what was asked of it, and closes what was open in a session that broke off: until
    # then it may write over what we put.
    deadline = time.monotonic() + 30.0
    while making.running.on_loop(lambda: is_writing(making.running)) or (
        method == "SFTP" and not making.running.on_loop(lambda: listed(making.running, volume))
    ):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    before = making.running.on_loop(lambda: put_foreign(making.running, volume))
    with pytest.raises(Failed, match="nothing shows that the file is what that run wrote"):
        making.settle()
    assert making.running.on_loop(lambda: listed(making.running, volume)) == before
    assert list(making.folder.glob("*.json")) == []


def is_writing(running: lab.Running) -> bool:
    tasks = running.world.tasks
    return any(tasks.is_running(str(one["upid"])) for one in tasks.newest_first())


def put_foreign(running: lab.Running, volume: str) -> dict[str, Any]:
    """Put a file of somebody else in the place of whatever is there, a minute from now."""
    world = running.world
    blob = world.blobs.put(b"of somebody else")
    with world.store.transaction():
        put_file(world, volume, "pve1", blob)
        key = next(key for key, one in world.store.items("volumes").items() if one["volid"] == volume)
        world.store.put("volumes", key, {**world.store.items("volumes")[key], "ctime": int(time.time()) + 60})
    return listed(running, volume)


def listed(running: lab.Running, volume: str) -> dict[str, Any]:
    volumes = running.world.store.items("volumes").values()
    return next((dict(one) for one in volumes if one["volid"] == volume), {})


@pytest.mark.soak
@pytest.mark.timeout(6 * 3600)
@pytest.mark.parametrize("making", SORTS, indirect=True)
def test_the_next_run_completes_it_wherever_the_last_was_killed(
    making: Making, request: pytest.FixtureRequest
) -> None:
    killed, problems = sweep(making)
    sys.stdout.write(f"\n{request.node.callspec.id}: {killed} kills, {len(problems)} not completed\n")
    sys.stdout.writelines(f"  {problem}\n" for problem in problems)
    assert problems == []
    assert killed
