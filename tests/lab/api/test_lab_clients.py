"""Clients that nobody here wrote: proxmoxer takes a VM through its life. And a lab that is killed."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from proxmoxer.core import ResourceException
from proxmoxer.tools import Tasks
from tests.support.lab import proxmoxer_client

from stackyard import lab


@pytest.fixture(autouse=True)
def _self_signed() -> Iterator[None]:
    # The lab's certificate is its own; proxmoxer is told so, and warns each time all the same.
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Unverified HTTPS request")
        yield


def test_proxmoxer_takes_a_vm_through_its_life() -> None:
    with lab.running(nodes=("pve1",)) as it:
        api = proxmoxer_client(it)
        node = api.nodes(api.nodes.get()[0]["node"])
        vmid = int(api.cluster.nextid.get())

        def done(upid: str) -> None:
            status = Tasks.blocking_status(api, upid, timeout=60, polling_interval=0.01)
            assert status is not None
            assert status["exitstatus"] == "OK"

        done(node.qemu.post(vmid=vmid, name="one", scsi0="local-lvm:4", net0="virtio,bridge=vmbr0"))
        vm = node.qemu(vmid)
        done(vm.status.start.post())
        assert vm.status.current.get()["status"] == "running"
        done(vm.config.post(name="two"))
        assert vm.config.get()["name"] == "two"
        done(vm.resize.put(disk="scsi0", size="+1G"))
        assert vm.config.get()["scsi0"] == "local-lvm:vm-100-disk-0,size=5G"
        done(vm.status.shutdown.post())
        done(vm.delete())
        with pytest.raises(ResourceException) as caught:
            vm.config.get()
        assert caught.value.status_code == 500
        assert "does not exist" in caught.value.content
        assert [task["type"] for task in node.tasks.get()] == [
            *("qmdestroy", "qmshutdown", "resize", "qmconfig", "qmstart", "qmcreate"),
        ]


def test_a_lab_that_was_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    program = textwrap.dedent(
        """
        import asyncio, json, sys
        from pathlib import Path
        from stackyard import lab

        async def main():
            latency = {lab.Work.START: 1000.0}
            async with lab.start(data=Path(sys.argv[1]), latency_s=latency) as it:
                print(json.dumps(it.document()), flush=True)
                await asyncio.Event().wait()

        asyncio.run(main())
        """
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        port = int(ready["url"].rpartition(":")[2])
        with lab.running(nodes=("other",)) as shape:
            api = proxmoxer_client(_pointed(shape, port, ready["password"]))
            api.nodes("pve1").qemu.post(vmid=100, scsi0="local-lvm:4")
            starting = api.nodes("pve1").qemu(100).status.start.post()
            assert api.nodes("pve1").tasks(starting).status.get()["status"] == "running"
        process.kill()
    with lab.running(data=tmp_path) as again:
        assert (again.api_token, again.password) == (ready["api_token"], ready["password"])
        assert again.fingerprint == ready["fingerprint"]
        api = proxmoxer_client(again)
        assert api.nodes("pve1").qemu(100).config.get()["scsi0"] == "local-lvm:vm-100-disk-0,size=4G"
        assert api.nodes("pve1").storage("local-lvm").status.get()["used"] == 4 * 2**30
        assert api.nodes("pve1").tasks(starting).status.get()["exitstatus"] == "unexpected status"


def _pointed(running: lab.Running, port: int, password: str) -> lab.Running:
    """Return a running lab's description that points at another process."""
    fields = {name: getattr(running, name) for name in running.__dataclass_fields__}
    return lab.Running(**{**fields, "port": port, "password": password})
