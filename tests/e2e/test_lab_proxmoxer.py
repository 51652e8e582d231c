"""proxmoxer, a client that nobody here wrote, takes guests through their lives on two nodes of a lab."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import proxmoxer
import pytest
from proxmoxer.core import AuthenticationError, ResourceException
from proxmoxer.tools import Files, Tasks
from tests.support.lab import proxmoxer_client
from tests.support.lab_consistency import Gone, problems_in
from tests.support.web import served

from stackyard import lab

# The lab's certificate is its own; proxmoxer is told so, and warns each time all the same.
pytestmark = pytest.mark.filterwarnings("ignore:Unverified HTTPS request")

GIB = 2**30


@pytest.fixture
def running() -> Iterator[lab.Running]:
    with lab.running(nodes=("pve1", "pve2")) as it:
        yield it
        nothing_left = Gone(leftovers=False)
        assert it.on_loop(lambda: problems_in(it.world, nothing_left)) == []


@pytest.fixture(params=["ticket", "token"])
def api(running: lab.Running, request: pytest.FixtureRequest) -> Any:
    if request.param == "ticket":
        return proxmoxer_client(running)
    userid, _, token = running.api_token.partition("!")
    name, _, value = token.partition("=")
    return proxmoxer.ProxmoxAPI(
        "127.0.0.1",
        port=running.port,
        user=userid,
        token_name=name,
        token_value=value,
        verify_ssl=False,
        timeout=60,
    )


def done(api: Any, upid: str) -> None:
    """Wait for a task as proxmoxer does; it must end well."""
    status = Tasks.blocking_status(api, upid, timeout=60, polling_interval=0.01)
    log = api.nodes(Tasks.decode_upid(upid)["node"]).tasks(upid).log.get()
    assert status["exitstatus"] == "OK", Tasks.decode_log(log)


def test_a_vm_lives_through_everything(api: Any) -> None:
    one, two = api.nodes("pve1"), api.nodes("pve2")
    vmid, copy = int(api.cluster.nextid.get()), 101
    done(api, one.qemu.post(vmid=vmid, name="web", cores=2, scsi0="local-lvm:4", net0="virtio,bridge=vmbr0"))
    vm = one.qemu(vmid)
    before = vm.config.get()
    vm.config.put(memory=2048, tags="a;b", delete="cores", digest=before["digest"])
    assert "cores" not in vm.config.get()
    with pytest.raises(ResourceException, match="checksum mismatch"):
        vm.config.put(memory=4096, digest=before["digest"])
    done(api, vm.snapshot.post(snapname="early", description="as it was"))
    done(api, vm.resize.put(disk="scsi0", size="+1G"))
    vm.config.put(name="other")
    done(api, vm.snapshot("early").rollback.post())
    assert vm.config.get()["scsi0"] == "local-lvm:vm-100-disk-0,size=4G"
    assert (vm.config.get()["name"], vm.config.get()["memory"]) == ("web", "2048")
    done(api, vm.snapshot("early").delete())

    done(api, vm.clone.post(newid=copy, name="copy", full=1))
    assert one.qemu(copy).config.get()["net0"] != vm.config.get()["net0"]
    done(api, one.qemu(copy).migrate.post(target="pve2", **{"with-local-disks": 1}))
    assert [guest["vmid"] for guest in two.qemu.get()] == [copy]
    done(api, two.qemu(copy).status.start.post())
    rows = {row["vmid"]: row for row in api.cluster.resources.get(type="vm")}
    assert (rows[copy]["node"], rows[copy]["status"]) == ("pve2", "running")
    assert two.storage("local-lvm").status.get()["used"] == 4 * GIB

    with pytest.raises(ResourceException, match="VM 101 is running - destroy failed"):
        two.qemu(copy).delete()
    done(api, two.qemu(copy).status.stop.post())
    done(api, two.qemu(copy).delete(purge=1))
    done(api, vm.delete(purge=1))
    assert one.qemu.get() == two.qemu.get() == []
    assert one.storage("local-lvm").status.get()["used"] == two.storage("local-lvm").status.get()["used"] == 0


def test_a_container_lives_through_everything(api: Any, tmp_path: Path) -> None:
    template = tmp_path / "alpine-3.22-default_20250617_amd64.tar.xz"
    template.write_bytes(b"stands for a root file system" * 100)
    one, two = api.nodes("pve1"), api.nodes("pve2")
    assert Files(api, "pve1", "local").upload_local_file_to_storage(str(template))["exitstatus"] == "OK"
    volid = f"local:vztmpl/{template.name}"
    net = "name=eth0,bridge=vmbr0,ip=dhcp"
    done(api, one.lxc.post(vmid=200, hostname="db", ostemplate=volid, rootfs="local-lvm:2", net0=net))
    container = one.lxc(200)
    container.config.put(memory=1024, delete=["swap", "net1"])
    assert container.config.get()["memory"] == 1024
    done(api, container.snapshot.post(snapname="early"))
    container.config.put(hostname="other")
    done(api, container.snapshot("early").rollback.post())
    assert container.config.get()["hostname"] == "db"
    done(api, container.snapshot("early").delete())
    done(api, container.resize.put(disk="rootfs", size="3G"))
    done(api, container.status.start.post())
    addresses = {interface["name"]: interface.get("inet") for interface in container.interfaces.get()}
    assert addresses["eth0"].startswith("10.31.")
    done(api, container.status.shutdown.post())

    done(api, container.clone.post(newid=201, full=1, hostname="copy"))
    done(api, one.lxc(201).migrate.post(target="pve2"))
    assert two.lxc(201).config.get()["rootfs"] == "local-lvm:vm-201-disk-0,size=3G"
    done(api, two.lxc(201).delete())
    done(api, container.delete(purge=1))
    done(api, one.storage("local").content(volid).delete())
    assert one.lxc.get() == two.lxc.get() == one.storage("local").content.get() == []


def test_files_are_uploaded_and_downloaded_with_their_checksums(api: Any, tmp_path: Path) -> None:
    image = tmp_path / "served.iso"
    image.write_bytes(b"bytes of an image" * 1000)
    (tmp_path / "SHA256SUMS").write_text(f"{hashlib.sha256(image.read_bytes()).hexdigest()}  served.iso\n")
    files = Files(api, "pve1", "local")
    assert files.upload_local_file_to_storage(str(image))["exitstatus"] == "OK"
    assert files.upload_local_file_to_storage(str(tmp_path / "none.iso")) is None
    with served(tmp_path) as url:
        assert files.get_file_info(f"{url}/served.iso")["size"] == 17_000
        api.nodes("pve1").storage("local").content("local:iso/served.iso").delete()
        assert files.download_file_to_storage(f"{url}/served.iso")["exitstatus"] == "OK"
        api.nodes("pve1").storage("local").content("local:iso/served.iso").delete()
        wrong = files.download_file_to_storage(f"{url}/served.iso", checksum="0" * 64, checksum_type="sha256")
    assert wrong["exitstatus"].startswith("checksum mismatch: got '")
    assert api.nodes("pve1").storage("local").content.get(content="iso") == []


def test_a_ticket_is_renewed_with_the_old_one_until_that_is_too_old(running: lab.Running) -> None:
    api = proxmoxer_client(running)
    auth = api._backend.auth
    first = auth.pve_auth_ticket
    auth.renew_age = 0
    running.on_loop(lambda: running.world.clock.advance(5000))
    assert api.version.get()["version"]
    second = auth.pve_auth_ticket
    assert second != first
    auth.renew_age = 3600
    running.on_loop(lambda: running.world.clock.advance(5000))
    assert api.version.get()["version"]
    running.on_loop(lambda: running.world.clock.advance(5000))
    with pytest.raises(ResourceException, match="401 Unauthorized: Authentication failed!"):
        api.version.get()
    auth.renew_age = 0
    with pytest.raises(AuthenticationError):
        api.version.get()


def test_what_is_wrong_with_each_parameter_reaches_the_caller(api: Any) -> None:
    with pytest.raises(ResourceException) as caught:
        api.nodes("pve1").qemu.post(vmid="x", cores=0, nothing=1)
    assert (caught.value.status_code, caught.value.content) == (400, "Parameter verification failed.")
    assert set(caught.value.errors) == {"vmid", "cores", "nothing"}
    with pytest.raises(ResourceException) as caught:
        api.nodes("pve1").qemu(100).config.get()
    assert caught.value.content == "Configuration file 'nodes/pve1/qemu-server/100.conf' does not exist"
