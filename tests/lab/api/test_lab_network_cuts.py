"""A network change that cuts a node off, and a timer on the node that puts the old network back."""

from __future__ import annotations

import asyncssh
import pytest
from tests.support.lab import LabClient, lab_client
from tests.support.lab_ssh import said, ssh_to

SAVED = "/etc/network/way-back"
RESTORE = f"mv -f {SAVED} /etc/network/interfaces && rm -f /etc/network/interfaces.new && ifreload -a"
ARM = f"systemd-run --quiet --collect --unit=back-1 --on-active=90 /bin/sh -c '{RESTORE}'"


async def cut_off(api: LabClient) -> None:
    """Take the only card from the bridge of the node."""
    await api.put(
        "/nodes/pve1/network/vmbr0", type="bridge", cidr="10.31.0.11/16", bridge_ports="", autostart=1
    )
    await api.put("/nodes/pve1/network")


async def test_a_timer_brings_a_node_back_that_a_network_change_cut_off() -> None:
    async with lab_client(ssh_port=0) as api:
        api.running.add_fault("network-cuts", node="pve1")
        async with ssh_to(api) as ssh:
            _, before, _ = await said(ssh, "cat /etc/network/interfaces")
            assert "bridge-ports eno1" in before
            assert await said(ssh, f"cp /etc/network/interfaces {SAVED} && {ARM}") == (0, "", "")
            assert (await said(ssh, "systemctl is-active back-1.timer"))[:2] == (0, "active\n")
            assert (await said(ssh, ARM))[0] == 1
        await cut_off(api)
        assert not api.world.cluster.is_online("pve1")
        with pytest.raises((asyncssh.Error, OSError)):
            async with ssh_to(api) as ssh:
                await said(ssh, "true")
        api.running.world.clock.advance(91)
        await api.running.world.clock.sleep(0.05)
        assert api.world.cluster.is_online("pve1")
        async with ssh_to(api) as ssh:
            assert (await said(ssh, "cat /etc/network/interfaces"))[1] == before
            assert (await said(ssh, f"test -e {SAVED}"))[0] == 1
            assert (await said(ssh, "systemctl is-active back-1.timer"))[:2] == (3, "inactive\n")
        assert (await api.get("/nodes/pve1/network/vmbr0"))["bridge_ports"] == "eno1"


async def test_a_timer_that_is_stopped_changes_nothing() -> None:
    async with lab_client(ssh_port=0) as api, ssh_to(api) as ssh:
        await said(ssh, f"cp /etc/network/interfaces {SAVED} && {ARM}")
        assert await said(ssh, "systemctl stop 'back-*.timer' 'other-*.timer'") == (0, "", "")
        assert (await said(ssh, "systemctl stop back-1.timer"))[0] == 5
        api.running.world.clock.advance(91)
        assert (await said(ssh, f"test -e {SAVED}"))[0] == 0
