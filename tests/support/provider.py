"""The built-in provider and the real bpg/proxmox, under a real engine, against a lab."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.judges import find_judge

from stackyard import lab, provider
from stackyard.clients import proxmox
from stackyard.engine.version import Engine

__all__ = [
    "Stack",
    "bpg_binary",
    "credentials",
    "driven",
    "lab_api",
    "lab_table",
    "make_template",
    "require_bpg",
]

HEAD = """
terraform {
  required_providers {
    proxmox = { source = "bpg/proxmox" }
  }
}
provider "proxmox" {
%s
}
"""


@dataclass(kw_only=True)
class Stack:
    """A configuration and its state, planned and applied with either provider.

    Attributes:
        engine: The engine.
        folder: Where the configuration is.
        environment: What both providers are told.
        reattach: How the engine finds the built-in one.
        settings: The engine's settings file that points to bpg's.
        provider_block: What is in the provider block.
        variables: Values of input variables.
        more: More of the engine's environment.
        pid: The engine that was started last.
    """

    engine: Engine
    folder: Path
    environment: dict[str, str]
    reattach: str
    settings: Path | None = None
    provider_block: str = ""
    variables: dict[str, str] = field(default_factory=dict)
    more: dict[str, str] = field(default_factory=dict)
    pid: int = 0

    def write(self, text: str) -> None:
        """Make this the configuration."""
        (self.folder / "main.tf").write_text(HEAD % self.provider_block + text)

    async def run(self, *args: str, status: int | None = 0, bpg: bool = False) -> str:
        """Run the engine; return what it said. A status of None is any."""
        env = {"PATH": os.environ["PATH"], "TF_IN_AUTOMATION": "1", "CHECKPOINT_DISABLE": "1"}
        if bpg:
            env |= self.environment
            env["TF_CLI_CONFIG_FILE"] = str(self.settings)
        else:
            env |= {"TF_REATTACH_PROVIDERS": self.reattach, "TF_CLI_CONFIG_FILE": os.devnull}
        env |= {f"TF_VAR_{name}": value for name, value in self.variables.items()}
        env |= self.more
        env |= {"HOME": str(self.folder), "TMPDIR": str(self.folder)}
        started = await asyncio.create_subprocess_exec(
            self.engine.path, *args, cwd=self.folder, env=env, stdin=PIPE, stdout=PIPE, stderr=STDOUT
        )
        self.pid = started.pid
        output, _ = await asyncio.wait_for(started.communicate(), 300)
        said = output.decode()
        assert status is None or started.returncode == status, said
        return said

    async def init(self) -> None:
        await self.run("init", "-input=false", "-no-color")

    async def apply(self, *args: str, bpg: bool = False) -> str:
        """Apply, after which nothing is left to do."""
        said = await self.run("apply", "-auto-approve", "-input=false", "-no-color", *args, bpg=bpg)
        await self.unchanged(bpg=bpg)
        return said

    async def plan(self, *, status: int, bpg: bool = False) -> str:
        options = ("-detailed-exitcode", "-input=false", "-no-color")
        return await self.run("plan", *options, status=status, bpg=bpg)

    async def unchanged(self, *, bpg: bool = False) -> None:
        """Check that a plan has nothing to do."""
        await self.plan(status=0, bpg=bpg)

    async def destroy(self, *, bpg: bool = False) -> str:
        return await self.run("destroy", "-auto-approve", "-input=false", "-no-color", bpg=bpg)

    async def values(self, address: str) -> dict[str, Any]:
        """Return the attributes of a resource in the state."""
        shown = json.loads(await self.run("show", "-json"))
        resources = shown["values"]["root_module"]["resources"]
        found = [one["values"] for one in resources if one["address"] == address]
        assert len(found) == 1, address
        values: dict[str, Any] = found[0]
        return values


def credentials(running: lab.Running) -> dict[str, str]:
    """Return the environment that either provider logs in to a lab with."""
    return {
        "PROXMOX_VE_ENDPOINT": running.url,
        "PROXMOX_VE_USERNAME": running.username,
        "PROXMOX_VE_PASSWORD": running.password,
        "PROXMOX_VE_INSECURE": "true",
    }


def lab_table(running: lab.Running, name: str) -> dict[str, Any]:
    """Return what a lab keeps under a name."""
    return dict(running.on_loop(lambda: running.world.store.items(name)))


@contextlib.asynccontextmanager
async def lab_api(running: lab.Running) -> AsyncIterator[proxmox.Client]:
    """Give a client of our own, for what somebody does by hand."""
    connection = proxmox.Connection(
        endpoint=running.url,
        # Accounts of ACME are for root with a password, and not for its tokens.
        credentials=proxmox.Login(username=running.username, password=running.password),
        trust=proxmox.Trust(fingerprint=running.fingerprint),
    )
    async with proxmox.Client(connection) as client:
        yield client


def make_template(running: lab.Running, node: str, vm_id: int) -> None:
    """Put a template into a lab, as somebody did long ago."""

    async def make() -> None:
        made: dict[str, str | int] = {"vmid": vm_id, "name": "base", "virtio0": "local-lvm:1", "agent": 1}
        async with lab_api(running) as api:
            for path, params in (
                (f"/nodes/{node}/qemu", made),
                (f"/nodes/{node}/qemu/{vm_id}/template", {}),
            ):
                upid = await api.post(path, params)
                if upid:
                    await proxmox.wait_for(api, upid, timeout_s=60.0)

    asyncio.run(make())


def bpg_binary() -> Path | None:
    """Return the real provider, where one is named."""
    named = os.environ.get("STACKYARD_TEST_BPG")
    return Path(named).absolute() if named else None


@contextlib.asynccontextmanager
async def _stack(
    engine: Engine, running: lab.Running, folder: Path, environment: Mapping[str, str]
) -> AsyncIterator[Stack]:
    env = {**credentials(running), **environment}
    async with provider.serve(provider.Options(environment=env, folder=folder)) as served:
        yield Stack(
            engine=engine,
            folder=folder,
            environment=env,
            reattach=served.reattach,
            settings=_bpg_settings(folder),
            provider_block=_ssh_block(running),
        )


def _ssh_block(running: lab.Running) -> str:
    nodes = [
        f'node {{\n name = "{name}"\n address = "127.0.0.1"\n port = {port}\n}}'
        for name, port in running.ssh_ports.items()
    ]
    return "ssh {\n" + "\n".join(nodes) + "\n}" if nodes else ""


def _bpg_settings(folder: Path) -> Path | None:
    binary = bpg_binary()
    if binary is None:
        return None
    plugins = folder / "plugins"
    plugins.mkdir(exist_ok=True)
    (plugins / "terraform-provider-proxmox").symlink_to(binary)
    settings = folder / "cli.tfrc"
    overrides = f'dev_overrides {{\n    "bpg/proxmox" = "{plugins}"\n  }}'
    settings.write_text(f"provider_installation {{\n  {overrides}\n  direct {{}}\n}}\n")
    return settings


def driven(
    engine: Engine,
    running: lab.Running,
    folder: Path,
    scenario: Callable[[Stack], Awaitable[None]],
    **environment: str,
) -> None:
    """Run a scenario with a stack in an event loop of its own, in which the built-in provider runs too."""

    async def run() -> None:
        async with _stack(engine, running, folder, environment) as stack:
            await scenario(stack)

    asyncio.run(run())


def require_bpg() -> None:
    """Skip the test where no real provider is named."""
    find_judge("bpg")
