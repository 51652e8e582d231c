"""A real engine in a folder of its own, whose state is kept by the state service."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from stackyard.engine.version import Engine, Flavour

__all__ = ["ROOT", "Folder", "make_folder"]

ROOT = """
terraform {
  backend "http" {}
}

variable "value" {
  default = "first"
}

resource "terraform_data" "one" {
  input = var.value
}

output "value" {
  value = terraform_data.one.output
}
"""
# Makes a resource that is not ready before the test says so.
SLOW = """
resource "terraform_data" "slow" {
  provisioner "local-exec" {
    command = "touch started; while [ ! -e go ]; do sleep 0.05; done"
  }
}
"""
TIMEOUT_S = 100.0


@dataclass(frozen=True)
class Ended:
    status: int
    text: str


@dataclass(frozen=True)
class Folder:
    """A root module, and the environment that its engine gets."""

    engine: Engine
    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    async def start(self, *arguments: str) -> asyncio.subprocess.Process:
        ours = {
            "TF_IN_AUTOMATION": "1",
            "TF_INPUT": "0",
            "CHECKPOINT_DISABLE": "1",
            "TF_CLI_CONFIG_FILE": "/dev/null",
            **self.environment,
        }
        return await asyncio.create_subprocess_exec(
            str(self.engine.path),
            *arguments,
            "-no-color",
            cwd=self.folder,
            env={**os.environ, **ours},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )

    async def run(self, *arguments: str) -> Ended:
        process = await self.start(*arguments)
        return await ended(process)

    async def must(self, *arguments: str) -> str:
        """Run a verb that has to work, and return what it printed."""
        done = await self.run(*arguments)
        assert done.status == 0, (arguments, done.text)
        return done.text

    async def apply(self, value: str, *options: str) -> Ended:
        return await self.run("apply", "-auto-approve", f"-var=value={value}", *options)


async def ended(process: asyncio.subprocess.Process) -> Ended:
    out, _ = await asyncio.wait_for(process.communicate(), TIMEOUT_S)
    return Ended(process.returncode or 0, out.decode())


async def make_folder(
    engine: Engine, folder: Path, environment: Mapping[str, str], *, root: str = ROOT
) -> Folder:
    """Write a root module and initialise it."""
    folder.mkdir(parents=True)
    (folder / "main.tf").write_text(root)
    # A repeated request comes a second later; the usual two repetitions are enough for what the tests do.
    made = Folder(engine, folder, {**environment, "TF_HTTP_RETRY_MAX": "2"})
    await made.must("init")
    return made


def is_tofu(engine: Engine) -> bool:
    return engine.flavour is Flavour.TOFU
