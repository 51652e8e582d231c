"""The example of bpg's own repository: everything in it at once, with either provider, applied and destroyed.

STACKYARD_TEST_BPG_EXAMPLE names the folder (`example` of a checkout), STACKYARD_TEST_BPG the binary of the
provider, STACKYARD_TEST_TLS_PROVIDER and STACKYARD_TEST_LOCAL_PROVIDER those of the others that it uses.
Without them it is skipped. What is changed in the copy is how a machine is reached by SSH: the addresses of
a lab are of no network.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.support.engine import engine
from tests.support.lab_inside import need_sandbox
from tests.support.provider import Stack, lab_table, require_bpg
from tests.support.recipes import LOCAL, PROXMOX, TLS, mirror

from stackyard import lab, provider
from stackyard.engine.version import Engine

__all__ = ["engine"]

pytestmark = [pytest.mark.bpg, pytest.mark.timeout(900)]

NODE = "pve"
# What tells the time has another value in every plan.
RESTLESS = ("_time", "_uptime")
# bpg plans to take away what a clone has from its template, and to look for the addresses of a template.
NEVER_SETTLED_BY_BPG = {
    "proxmox_virtual_environment_container.example",
    "proxmox_virtual_environment_vm.example_template",
}


@pytest.fixture
def running() -> Iterator[lab.Running]:
    require_example()
    require_bpg()
    # A provisioner runs a program in a machine.
    need_sandbox()
    with lab.running(nodes=(NODE,), ssh_port=0) as it:
        yield it


def require_example() -> Path:
    named = os.environ.get("STACKYARD_TEST_BPG_EXAMPLE")
    if not named:
        pytest.skip("STACKYARD_TEST_BPG_EXAMPLE names no folder of bpg's example")
    folder = Path(named)
    assert (folder / "main.tf").is_file(), f"STACKYARD_TEST_BPG_EXAMPLE is {named}, which has no main.tf"
    return folder


def copy_example(source: Path, folder: Path, running: lab.Running) -> None:
    """Copy the example, with the ports of the lab's nodes in it."""
    for path in sorted(source.glob("*.tf")):
        shutil.copy(path, folder / path.name)
    port = running.ssh_ports[NODE]
    node = f'node {{\n      name    = "{NODE}"\n      address = "127.0.0.1"\n      port    = {port}\n    }}'
    change(folder / "main.tf", "  ssh {\n", f"  ssh {{\n    {node}\n")
    # A guest is behind its node, as in any network of its own.
    bastion = (
        '    bastion_host     = "127.0.0.1"\n'
        f"    bastion_port     = {port}\n"
        '    bastion_user     = "root"\n'
        "    bastion_password = var.virtual_environment_root_password\n"
    )
    change(
        folder / "resource_virtual_environment_vm.tf",
        '    type        = "ssh"\n',
        f'    type        = "ssh"\n{bastion}',
    )


def change(path: Path, before: str, after: str) -> None:
    path.chmod(0o644)
    text = path.read_text()
    assert text.count(before) == 1, f"{path.name} has another form than it had: {before!r}"
    path.write_text(text.replace(before, after))


@contextlib.asynccontextmanager
async def example(engine: Engine, running: lab.Running, folder: Path) -> AsyncIterator[Stack]:
    """Give a stack of the example."""
    source = require_example()
    settings = mirror(folder / "providers", TLS, LOCAL, PROXMOX, flavour=engine.flavour)
    work = folder / "example"
    work.mkdir()
    copy_example(source, work, running)
    environment = {"PROXMOX_VE_SSH_PASSWORD": running.password}
    async with provider.serve(provider.Options(environment=environment, folder=work)) as served:
        yield Stack(
            engine=engine,
            folder=work,
            environment=environment,
            reattach=served.reattach,
            settings=settings,
            variables={
                "virtual_environment_endpoint": running.url,
                "virtual_environment_api_token": running.api_token,
                "virtual_environment_root_password": running.password,
            },
            more={"TF_CLI_CONFIG_FILE": str(settings)},
        )


async def changes(stack: Stack, *, bpg: bool) -> tuple[set[str], set[str]]:
    """Return the resources and the outputs that a plan would change."""
    await stack.run("plan", "-input=false", "-out=later.plan", bpg=bpg)
    said = json.loads(await stack.run("show", "-json", "later.plan", bpg=bpg))
    resources = {
        one["address"]
        for one in said["resource_changes"]
        if one["change"]["actions"] not in (["no-op"], ["read"])
    }
    outputs = {name for name, one in said.get("output_changes", {}).items() if one["actions"] != ["no-op"]}
    return resources, outputs


async def end(stack: Stack, running: lab.Running, *, bpg: bool) -> None:
    """Destroy everything, of which nothing is left."""
    await stack.destroy(bpg=bpg)
    assert json.loads((stack.folder / "terraform.tfstate").read_text())["resources"] == []
    assert lab_table(running, "guests") == {}
    assert lab_table(running, "volumes") == {}


async def begin(stack: Stack, *, bpg: bool) -> None:
    """Apply everything, after which a machine has welcomed the provisioner."""
    await stack.run("init", "-input=false", "-no-color", bpg=True)
    said = await stack.run("apply", "-auto-approve", "-input=false", "-no-color", bpg=bpg)
    assert "Welcome to terraform-provider-proxmox-example!" in said


def test_the_example_is_applied_settles_and_goes(
    engine: Engine, running: lab.Running, tmp_path: Path
) -> None:
    async def scenario() -> None:
        async with example(engine, running, tmp_path) as stack:
            await begin(stack, bpg=False)
            resources, _ = await changes(stack, bpg=False)
            assert resources == set()
            # Data sources that were read before the others were made are read again.
            await stack.run("apply", "-refresh-only", "-auto-approve", "-input=false")
            resources, outputs = await changes(stack, bpg=False)
            assert resources == set()
            assert {name for name in outputs if not name.endswith(RESTLESS)} == set()
            resources, _ = await changes(stack, bpg=True)
            assert resources <= NEVER_SETTLED_BY_BPG
            await end(stack, running, bpg=False)

    asyncio.run(scenario())


def test_the_lab_serves_the_example_of_bpg_itself(
    engine: Engine, running: lab.Running, tmp_path: Path
) -> None:
    async def scenario() -> None:
        async with example(engine, running, tmp_path) as stack:
            await begin(stack, bpg=True)
            resources, _ = await changes(stack, bpg=True)
            assert resources == NEVER_SETTLED_BY_BPG
            resources, _ = await changes(stack, bpg=False)
            assert resources <= NEVER_SETTLED_BY_BPG
            await end(stack, running, bpg=True)

    asyncio.run(scenario())
