"""Scenarios on machines of a lab: real SSH, real shells, and the commands of Proxmox VE."""

from __future__ import annotations

from pathlib import Path

import asyncssh
import pytest
from tests.support.lab import LabClient
from tests.support.lab_inside import make_guest, with_sandbox
from tests.support.lab_nested import PASSWORD, client_of, make_node, sessions
from tests.support.scenarios import run_on
from tests.support.site import KEY, write_site

from stackyard.clients import ssh
from stackyard.scenario.machines import MachineCommand, Remote
from stackyard.scenario.options import ScenarioOptions
from stackyard.sources.site.load import Site


def jump(api: LabClient, folder: Path) -> ssh.Host:
    assert api.running.ssh_port is not None
    return ssh.Host(
        address="127.0.0.1",
        port=api.running.ssh_port,
        password=api.running.password,
        known_hosts=folder / "known_hosts",
    )


async def test_a_user_made_in_a_guest_logs_in_and_becomes_root(tmp_path: Path) -> None:
    key = asyncssh.generate_private_key("ssh-ed25519")
    own = key.export_private_key().decode()
    public = key.export_public_key().decode()

    async with with_sandbox() as api:
        await make_guest(api, 100, ciuser="deb", sshkeys=public)
        write_site(
            tmp_path, secrets=f"ssh_keys:\n  own: {public}  one: {KEY}\n", nodes__father=None, nodes__pve=None
        )
        way = {
            "address": "10.31.2.100",
            "private_key": own,
            "via": jump(api, tmp_path),
            "known_hosts": tmp_path / "known_hosts",
        }
        site = Site.open(tmp_path)
        outcome = await run_on(Remote(ssh.Host(**way, username="deb")), "user-setup", site=site)  # type: ignore[arg-type]
        assert outcome.error is None, outcome.error.detail
        made = Remote(ssh.Host(**way, username="homestak"))  # type: ignore[arg-type]
        assert (await made.run(MachineCommand(script="whoami"))).strip() == "root"
        assert (await made.run(MachineCommand(script="whoami", as_root=False))).strip() == "homestak"
        await made.close()


async def test_a_node_is_set_up_and_its_token_opens_its_api(tmp_path: Path) -> None:
    async with with_sandbox() as api:
        await make_node(api, 101, ipconfig0="ip=10.31.2.101/16,gw=10.31.0.1")
        write_site(tmp_path)
        there = ssh.Host(
            address="10.31.2.101",
            password=PASSWORD,
            via=jump(api, tmp_path),
            known_hosts=tmp_path / "known_hosts",
        )
        site = Site.load(tmp_path)
        outcome = await run_on(
            Remote(there), "pve-setup", site=site, options=ScenarioOptions(skip=("setup_pve",))
        )
        assert outcome.error is None, outcome.error.detail
        made = Site.load(tmp_path)
        node = made.nodes["inner101"].model
        assert (node.api_endpoint, node.datastore) == ("https://10.31.2.101:8006", "local-lvm")
        async with sessions() as session:
            inner = await client_of(api, 101, session)
            assert node.api_fingerprint == inner.running.fingerprint
            inner = inner.with_token(made.secret_values.api_tokens["inner101"])
            assert [one["node"] for one in await inner.get("/nodes")] == ["inner101"]
            await inner.done(await inner.post("/nodes/inner101/qemu", vmid=500, memory=512))


@pytest.mark.soak
async def test_stackyard_is_installed_in_a_guest_that_reaches_nothing_and_runs_there(tmp_path: Path) -> None:
    async with with_sandbox() as api:
        await make_guest(api, 100, ciuser="root", cipassword=PASSWORD)
        there = ssh.Host(
            address="10.31.2.100",
            password=PASSWORD,
            via=jump(api, tmp_path),
            known_hosts=tmp_path / "known_hosts",
        )
        outcome = await run_on(Remote(there), "bootstrap-install", options=ScenarioOptions(user="ops"))
        assert outcome.error is None, outcome.error.detail
        assert outcome.context["engine"].startswith(("tofu ", "terraform "))
