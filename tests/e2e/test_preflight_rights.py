"""What the preflight asks of a token is what a run needs: no less, so that it works, and no more."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import proxmoxer
import pytest
from tests.e2e.test_preflight_host import ENOUGH
from tests.support.engine import real_engine
from tests.support.lab import proxmoxer_client
from tests.support.path import Yard, make_yard
from tests.support.preflight import details, look, with_role

from stackyard import lab
from stackyard.engine.version import Flavour
from stackyard.guard.rights import list_rights
from stackyard.path.environment import EnvironmentSource
from stackyard.render.userdata import with_data_files

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(600)]


@pytest.fixture
def running() -> Iterator[lab.Running]:
    with lab.running(nodes=("pve1",), ssh_port=0) as found:
        yield found


def needs_of(folder: Path, env: str) -> dict[str, set[str]]:
    """Return the privileges on paths that an env needs, each in the way that grants the least."""
    resolved = EnvironmentSource.find(str(folder)).resolve(env, None)
    desired = with_data_files(resolved.desired, resolved.target.state_name)
    grants: dict[str, set[str]] = {}
    for right in list_rights(desired, zones={}):
        for grant in right.ways[0]:
            grants.setdefault(grant.path, set()).add(grant.privilege)
    return grants


def engine() -> dict[str, str]:
    return {"STACKYARD_TOFU": str(real_engine(Flavour.TOFU).path)}


def test_a_token_with_just_what_is_asked_for_makes_and_destroys_machines_and_containers(
    running: lab.Running, tmp_path: Path
) -> None:
    grants = needs_of(make_yard(running, tmp_path / "root").folder, "dev")
    yard = with_role(running, tmp_path / "site", grants).with_env(**engine())
    assert yard.json("preflight", "env:dev")["errors"] == []
    yard.run("apply", "env:dev")
    assert set(yard.guests()) == {10000, 10001, 10002}
    yard.run("destroy", "env:dev", "--allow-destroy", "web,db,dns")
    assert yard.guests() == {}


@pytest.mark.soak
def test_without_any_one_privilege_that_is_asked_for_the_run_fails(
    running: lab.Running, tmp_path: Path
) -> None:
    yard = with_role(running, tmp_path / "site", ENOUGH).with_env(**engine())
    api: Any = proxmoxer_client(running)
    roles = {path: f"ops-{number}" for number, path in enumerate(sorted(ENOUGH))}
    tried = 0
    for path, privileges in ENOUGH.items():
        # An agent that may not be asked is waited for; what is only advised is not needed.
        for privilege in set(privileges) - {"VM.GuestAgent.Audit", "Sys.Audit"}:
            api.access.roles(roles[path]).put(privs=",".join(p for p in privileges if p != privilege))
            assert details(look(yard.folder, "n1-basic"), "E-PREFLIGHT-PRIVILEGE")
            assert (
                yard.run("apply", "manifest:n1-basic", "-H", "lab", "--no-verify", status=None).status == 1
            ), privilege
            tried += 1
            api.access.roles(roles[path]).put(privs=",".join(privileges))
            clear(yard, api)
    print(f"{tried} privileges were taken away one by one; no run worked without.")  # noqa: T201 - a soak's count


def clear(yard: Yard, api: Any) -> None:
    """Take away what a run left that failed halfway."""
    yard.run("destroy", "manifest:n1-basic", "-H", "lab", "--allow-destroy", "edge", status=None)
    node = api.nodes("pve1")
    for guest in yard.guests():
        with contextlib.suppress(proxmoxer.ResourceException):
            wait(running=yard.running, upid=node.qemu(guest).status.stop.post())
        wait(running=yard.running, upid=node.qemu(guest).delete())
    for volume in node.storage("local").content.get():
        node.storage("local").content(volume["volid"]).delete()


def wait(*, running: lab.Running, upid: str) -> None:
    """Wait for the end of a task."""
    asyncio.run_coroutine_threadsafe(running.world.tasks.wait(upid), running.loop).result()
