"""The way back of a network change, on nodes of a lab: what it leaves there, whatever happens meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import asyncssh
import pytest
from tests.support.lab import LabClient, lab_client
from tests.support.lab_ssh import said, ssh_to

from stackyard.base import events
from stackyard.clients import proxmox
from stackyard.clients.ssh.host import Host, OpenSsh
from stackyard.guard import Finding, Permit
from stackyard.guard.hypervisor.management import ALLOW_MANAGEMENT_NETWORK, CUTS_MANAGEMENT
from stackyard.guard.inspection import Verdict
from stackyard.path.run import Run
from stackyard.path.way_back import NetworkRestoredError, NoWayBackError, keep_way_back

SERVICE = "stackyard-way-back.service"
LEFT = (
    "ls /etc/network; systemctl is-active 'stackyard-way-back-*.timer'; "
    f"systemctl is-enabled {SERVICE}; test -e /etc/systemd/system/{SERVICE} && echo service"
)
NOTHING = "interfaces\ninactive\ndisabled\n"


@contextlib.asynccontextmanager
async def way_back(api: LabClient, logins: dict[str, Host]) -> AsyncIterator[None]:
    """Change the networks of nodes with a way back, as a run does that was permitted to."""
    connection = proxmox.Connection(
        endpoint=api.running.url,
        credentials=proxmox.Token(text=api.running.api_token),
        trust=proxmox.Trust(fingerprint=api.running.fingerprint),
    )
    permitted = tuple(
        Finding(kind=CUTS_MANAGEMENT, detail="", permit=Permit(option=ALLOW_MANAGEMENT_NETWORK, name=node))
        for node in logins
    )
    async with proxmox.Client(connection) as client:
        # Of a run, it uses these parts.
        parts = {"resolved": SimpleNamespace(ssh=SimpleNamespace(logins=logins)), "client": client}
        run = cast("Run", SimpleNamespace(**parts, emit=events.ignore))
        async with keep_way_back(run, Verdict(refused=(), permitted=permitted)):
            yield


def login(api: LabClient, folder: Path, node: str = "pve1") -> Host:
    return Host(
        address="127.0.0.1",
        port=api.running.ssh_ports[node],
        password=api.running.password,
        known_hosts=folder / "known_hosts",
        connect_s=5.0,
    )


async def read_left(api: LabClient, node: str = "pve1") -> str:
    """Return what a node still has of a way back."""
    async with ssh_to(api, node) as ssh:
        return (await said(ssh, LEFT))[1]


async def cut_at_boot(api: LabClient) -> None:
    """Leave a change pending that would cut the node off once it boots."""
    await api.put(
        "/nodes/pve1/network/vmbr0", type="bridge", cidr="10.31.0.11/16", bridge_ports="", autostart=1
    )


async def test_a_node_that_restarts_meanwhile_comes_back_with_its_old_network(tmp_path: Path) -> None:
    async with lab_client(ssh_port=0) as api:
        api.running.add_fault("network-cuts", node="pve1")
        async with ssh_to(api) as ssh:
            before = (await said(ssh, "cat /etc/network/interfaces"))[1]

        async def change_and_restart() -> None:
            async with way_back(api, {"pve1": login(api, tmp_path)}):
                assert "enabled\n" in await read_left(api)
                await cut_at_boot(api)
                await api.post("/nodes/pve1/status", command="reboot")

        with pytest.raises(NetworkRestoredError, match="or was restarted"):
            await change_and_restart()
        async with ssh_to(api) as ssh:
            assert (await said(ssh, "cat /etc/network/interfaces"))[1] == before
        assert await read_left(api) == NOTHING
        # Without a way back, the same restart cuts the node off.
        await cut_at_boot(api)
        await api.post("/nodes/pve1/status", command="reboot")
        async with asyncio.timeout(30):
            while not api.world.cluster.is_cut_off:
                await asyncio.sleep(0.05)


async def test_a_change_that_stays_leaves_nothing_on_the_node(tmp_path: Path) -> None:
    async with lab_client(ssh_port=0) as api:
        async with way_back(api, {"pve1": login(api, tmp_path)}):
            await api.put("/nodes/pve1/network/vmbr0", type="bridge", mtu=1400, bridge_ports="eno1")
            await api.put("/nodes/pve1/network")
        assert await read_left(api) == NOTHING
        assert (await api.get("/nodes/pve1/network/vmbr0"))["mtu"] == "1400"


async def test_no_timer_is_left_on_a_node_where_another_has_no_way_back(tmp_path: Path) -> None:
    async with lab_client(ssh_port=0, nodes=("pve1", "pve2")) as api:
        logins = {"pve1": login(api, tmp_path), "pve2": replace(login(api, tmp_path), port=1)}
        with pytest.raises(NoWayBackError, match="On pve2, no timer can be set"):
            async with way_back(api, logins):
                pytest.fail("nothing may be changed")
        assert await read_left(api) == NOTHING


async def test_a_change_stays_although_the_answer_to_its_confirmation_is_lost(tmp_path: Path) -> None:
    async with lab_client(ssh_port=0) as api:
        async with way_back(api, {"pve1": login(api, tmp_path)}):
            api.running.add_fault("drop", method="SSH", path="*mv -f*", when="after", times=1)
        commands = [one.path for one in api.world.journal.entries() if one.method == "SSH"]
        assert sum("mv -f" in one and "echo kept" in one for one in commands) == 2
        assert await read_left(api) == NOTHING


@pytest.fixture
def as_ops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> asyncssh.SSHKey:
    """Give the key of `ops`, the user whom OpenSSH's settings name for every machine."""
    folder = tmp_path / ".ssh"
    folder.mkdir(mode=0o700)
    key = asyncssh.generate_private_key("ssh-ed25519")
    key.write_private_key(folder / "id_ed25519")
    (folder / "config").write_text(f"Host *\n  User ops\n  IdentityFile {folder}/id_ed25519\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    return key


async def test_a_user_of_openssh_s_settings_becomes_root_by_sudo(
    tmp_path: Path, as_ops: asyncssh.SSHKey
) -> None:
    async with lab_client(ssh_port=0) as api:
        with api.world.store.transaction():
            line = as_ops.export_public_key().decode().strip()
            api.world.store.put("authorized_keys", "ops", {"lines": [line]})
        host = replace(login(api, tmp_path), password=None, openssh=OpenSsh(has_port=True))
        async with way_back(api, {"pve1": host}):
            assert "enabled\n" in await read_left(api)
        commands = [one.path for one in api.world.journal.entries() if one.method == "SSH"]
        assert sum(one.startswith("sudo -n /bin/sh -c") for one in commands) >= 4
        assert await read_left(api) == NOTHING
