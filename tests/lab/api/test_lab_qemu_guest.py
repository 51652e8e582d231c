"""What is inside a VM: its cloud-init data and its guest agent."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.support.lab import LabClient, Refused
from tests.support.lab_qemu import Q, change, done, make, with_lab

from pvelab import Work
from pvelab.world.access.sha256_crypt import verify_password

A = f"{Q}/100/agent"
CI = f"{Q}/100/cloudinit"


async def start(api: LabClient) -> None:
    await done(api, await api.post(f"{Q}/100/status/start"))


async def make_cloud(api: LabClient, **params: Any) -> None:
    await make(
        api,
        **{
            "name": "web.lab.test",
            "ciuser": "bob",
            "cipassword": "secret",
            "sshkeys": "ssh-ed25519%20AAAA%20a%0Assh-ed25519%20BBBB%20b%0A",
            "nameserver": "10.0.0.1 10.0.0.2",
            "searchdomain": "lab.test",
            "net0": "virtio=BC:24:11:00:00:0A,bridge=vmbr0",
            "ipconfig0": "ip=10.0.0.5/24,gw=10.0.0.1,ip6=fd00::5/64,gw6=fd00::1",
            "net1": "virtio=BC:24:11:00:00:0B,bridge=vmbr0",
            "ipconfig1": "ip=dhcp,ip6=auto",
            "ide2": "local-lvm:cloudinit",
            **params,
        },
    )


async def test_the_user_data_has_names_users_keys_and_a_hash_of_the_password() -> None:
    async with with_lab() as api:
        await make_cloud(api)
        text = await api.get(f"{CI}/dump", type="user")
        lines = text.splitlines()
        assert lines[:5] == [
            "#cloud-config",
            "hostname: web",
            "manage_etc_hosts: true",
            "fqdn: web.lab.test",
            "user: bob",
        ]
        assert lines[6:] == [
            "ssh_authorized_keys:",
            "  - ssh-ed25519 AAAA a",
            "  - ssh-ed25519 BBBB b",
            "chpasswd:",
            "  expire: False",
            "users:",
            "  - default",
            "package_upgrade: true",
        ]
        assert verify_password("secret", lines[5].removeprefix("password: "))
        await api.put(f"{Q}/100/config", ciuser="root", ciupgrade=0, delete="cipassword,sshkeys")
        text = await api.get(f"{CI}/dump", type="user")
        assert text.endswith("user: root\ndisable_root: False\nchpasswd:\n  expire: False\n")


async def test_the_network_data_has_static_and_dynamic_addresses() -> None:
    async with with_lab() as api:
        await make_cloud(api)
        text = await api.get(f"{CI}/dump", type="network")
        assert text.splitlines() == [
            "version: 1",
            "config:",
            "    - type: physical",
            "      name: eth0",
            "      mac_address: 'bc:24:11:00:00:0a'",
            "      subnets:",
            "      - type: static",
            "        address: '10.0.0.5'",
            "        netmask: '255.255.255.0'",
            "        gateway: '10.0.0.1'",
            "      - type: static6",
            "        address: 'fd00::5/64'",
            "        gateway: 'fd00::1'",
            "    - type: physical",
            "      name: eth1",
            "      mac_address: 'bc:24:11:00:00:0b'",
            "      subnets:",
            "      - type: dhcp4",
            "      - type: ipv6_slaac",
            "    - type: nameserver",
            "      address:",
            "      - '10.0.0.1'",
            "      - '10.0.0.2'",
            "      search:",
            "      - 'lab.test'",
        ]
        await api.put(f"{Q}/100/config", citype="configdrive2")
        text = await api.get(f"{CI}/dump", type="network")
        assert "iface eth0 inet static\n        address 10.0.0.5\n        netmask 255.255.255.0\n" in text
        assert "auto eth1\niface eth1 inet dhcp\niface eth1 inet6 auto\n" in text


async def test_the_instance_changes_with_what_it_is_told() -> None:
    async with with_lab() as api:
        await make_cloud(api)
        first = await api.get(f"{CI}/dump", type="meta")
        assert re.fullmatch(r"instance-id: [0-9a-f]{40}\n", first)
        assert await api.get(f"{CI}/dump", type="meta") == first
        await api.put(f"{Q}/100/config", ciuser="eve")
        assert await api.get(f"{CI}/dump", type="meta") != first


async def test_changes_of_a_running_vm_are_not_in_its_drive_before_that_is_made_again() -> None:
    async with with_lab() as api:
        await make_cloud(api, cipassword="secret")
        await start(api)
        await api.put(f"{Q}/100/config", ciuser="eve", citype="nocloud", delete="searchdomain")
        rows = {row["key"]: row for row in await api.get(CI)}
        assert rows["ciuser"] == {"key": "ciuser", "value": "bob", "pending": "eve"}
        assert rows["citype"] == {"key": "citype", "pending": "nocloud"}
        assert rows["searchdomain"] == {"key": "searchdomain", "delete": 1}
        assert rows["cipassword"] == {"key": "cipassword", "value": "**********"}
        await api.put(f"{Q}/100/config", ciuser="bob")
        rows = {row["key"]: row for row in await api.get(CI)}
        assert rows["ciuser"] == {"key": "ciuser", "value": "bob"}
        assert await api.put(CI) is None
        rows = {row["key"]: row for row in await api.get(CI)}
        assert rows["citype"] == {"key": "citype", "value": "nocloud"}
        assert "searchdomain" not in rows
        change(api, 100, lock="backup")
        with pytest.raises(Refused, match=r"500 VM is locked \(backup\)"):
            await api.put(CI)


async def test_a_restart_makes_the_drive_again() -> None:
    async with with_lab() as api:
        await make_cloud(api)
        await start(api)
        await api.put(f"{Q}/100/config", ciuser="eve")
        await done(api, await api.post(f"{Q}/100/status/reboot"))
        rows = {row["key"]: row for row in await api.get(CI)}
        assert rows["ciuser"] == {"key": "ciuser", "value": "eve"}


async def test_the_agent_is_refused_for_each_reason_in_its_order() -> None:
    async with with_lab(latency_s={Work.BOOT: 12.0}) as api:
        api.world.clock.hold()
        await make(api, net0="virtio,bridge=vmbr0")
        with pytest.raises(Refused, match=r"500 No QEMU guest agent configured"):
            await api.get(f"{A}/network-get-interfaces")
        change(api, 100, agent="enabled=1")
        with pytest.raises(Refused, match="500 VM 100 is not running"):
            await api.post(f"{A}/ping")
        await start(api)
        for _ in range(2):
            with pytest.raises(Refused, match="500 QEMU guest agent is not running"):
                await api.post(f"{A}/ping")
            api.world.clock.advance(5)
        api.world.clock.advance(3)
        assert await api.post(f"{A}/ping") == {"result": {}}
        change(api, 100, agent="0")
        with pytest.raises(Refused, match="500 QEMU guest agent is not running"):
            await api.post(f"{A}/ping")
        with pytest.raises(
            Refused, match=r"500 Configuration file 'nodes/pve1/qemu-server/999\.conf' does not"
        ):
            await api.post(f"{Q}/999/agent/ping")


async def test_interfaces_have_static_addresses_of_cloud_init_and_leases_by_network() -> None:
    async with with_lab() as api:
        await make_cloud(
            api,
            agent=1,
            net2="virtio=BC:24:11:00:00:0C,bridge=vmbr0,tag=7",
            ipconfig2="ip=dhcp",
            net3="virtio=BC:24:11:00:00:0D,bridge=vmbr0,link_down=1",
            ipconfig3="ip=dhcp",
        )
        await start(api)
        found = (await api.get(f"{A}/network-get-interfaces"))["result"]
        by_name = {interface["name"]: interface for interface in found}
        assert [interface["name"] for interface in found] == ["lo", "eth0", "eth1", "eth2", "eth3"]
        assert by_name["eth0"]["hardware-address"] == "bc:24:11:00:00:0a"
        static = {"ip-address": "10.0.0.5", "ip-address-type": "ipv4", "prefix": 24}
        assert by_name["eth0"]["ip-addresses"][0] == static
        first, second = (by_name[name]["ip-addresses"][0]["ip-address"] for name in ("eth1", "eth2"))
        assert first.startswith("10.31.")
        assert not second.startswith("10.31.")
        assert by_name["eth3"]["ip-addresses"] == []
        await done(api, await api.post(f"{Q}/100/status/reboot"))
        again = (await api.get(f"{A}/network-get-interfaces"))["result"]
        assert again[2]["ip-addresses"] == by_name["eth1"]["ip-addresses"]


async def test_the_agent_tells_what_the_lab_knows_of_the_guest() -> None:
    async with with_lab() as api:
        await make(api, name="web", cores=2, sockets=2, memory=256, agent=1, scsi0="local-lvm:4")
        await start(api)

        async def ask(command: str) -> Any:
            return (await api.get(f"{A}/{command}"))["result"]

        assert await ask("get-host-name") == {"host-name": "web"}
        assert (await ask("get-osinfo"))["id"] == "debian"
        assert len(await ask("get-vcpus")) == 4
        assert len(await ask("get-memory-blocks")) == 2
        assert await ask("get-time") // 10**9 == pytest.approx(api.world.clock.now(), abs=60)
        assert await ask("get-timezone") == {"zone": "UTC", "offset": 0}
        assert (await ask("get-fsinfo"))[0]["total-bytes"] == 4 * 2**30
        assert "guest-ping" in [entry["name"] for entry in (await ask("info"))["supported_commands"]]
        assert {"name": "ping"} in await api.get(A)
        assert await api.post(A, command="ping") == {"result": {}}
        assert await api.post(f"{A}/fsfreeze-status") == {"result": "thawed"}
        assert await api.post(f"{A}/fsfreeze-freeze") == {"result": 1}
        assert await api.post(f"{A}/fsfreeze-status") == {"result": "frozen"}
        assert await api.post(f"{A}/fsfreeze-thaw") == {"result": 1}
        assert await api.post(f"{A}/shutdown") == {"result": None}
        assert (await api.get(f"{Q}/100/status/current"))["status"] == "stopped"


async def test_a_password_that_is_hashed_already_and_that_of_windows_are_kept() -> None:
    async with with_lab() as api:
        hashed = "$5$abc$0123456789"
        await make(api, 100, cipassword=hashed)
        await make(api, 101, cipassword="secret", ostype="win11")
        assert f"password: {hashed}\n" in await api.get(f"{CI}/dump", type="user")
        assert "password: secret\n" in await api.get(f"{Q}/101/cloudinit/dump", type="user")


async def test_who_may_not_change_cloud_init_sees_no_password() -> None:
    async with with_lab() as api:
        await make_cloud(api)
        with api.world.store.transaction():
            put = api.world.store.put
            put("users", "bob@pve", {"enable": 1, "groups": [], "tokens": {"t": {"privsep": 0}}})
            put("token_secrets", "bob@pve!t", {"value": "secret"})
            put("acl", "/vms", {"users": {"bob@pve": {"PVEAuditor": 1}}})
        text = await api.with_token("bob@pve!t=secret").get(f"{CI}/dump", type="user")
        assert "password: **********\n" in text
