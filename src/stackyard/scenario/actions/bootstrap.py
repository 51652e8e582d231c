"""stackyard itself on another machine: one archive with all that it needs, or an installer of the user."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.base.errors import UsageError
from stackyard.operator.delegation.archive import find_archive
from stackyard.scenario.actions.apt import APT_GET
from stackyard.scenario.actions.setup import read_json
from stackyard.scenario.actions.users import make_user
from stackyard.scenario.failures import PhaseFailedError
from stackyard.scenario.model import ActionResult

if TYPE_CHECKING:
    from stackyard.scenario.context import Context

__all__ = ["RunBootstrap", "VerifyInstall"]

_FOLDER = "/opt/stackyard"
_PROGRAM = "/usr/local/bin/stackyard"
_INSTALL_S = 600.0
# What an installation by homestak's own installer has to say of itself.
_PARTS = ("ansible", "iac-driver", "tofu")

_UNPACK = """\
set -e
mkdir -p {folder}
if [ ! -e {place} ]; then
rm -rf {place}.new
mkdir {place}.new
tar -xzf {archive} -C {place}.new --no-same-owner
mv {place}.new {place}
fi
rm -f {archive}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunBootstrap:
    """Installs stackyard: from an archive that needs no internet over there, or by an installer."""

    async def run(self, context: Context) -> ActionResult:
        """Install it, and make the user that was asked for."""
        source = context.options.source
        message = await (_by_archive(context) if source is None else _by_installer(context, source))
        if context.options.user is not None and source is None:
            await make_user(context)
        return ActionResult(success=True, message=message)


async def _by_archive(context: Context) -> str:
    archive = await find_archive(context.emit)
    place = f"{_FOLDER}/{archive.digest[:16]}"
    if not await context.succeeds(f"test -x {place}/bin/stackyard"):
        made = (await context.sh("mktemp -d /tmp/stackyard-XXXXXXXX", as_root=False)).strip()
        target = f"{made}/archive.tar.gz"
        context.log(f"sending {archive.size_bytes // 2**20} MiB")
        await context.machine.send(archive.path, target)
        said = await context.sh(f"sha256sum {shlex.quote(target)}")
        if said.split()[0] != archive.digest:
            raise PhaseFailedError(f"The archive did not arrive on {context.machine.shown} as it is.")
        script = _UNPACK.format(folder=_FOLDER, place=place, archive=shlex.quote(target))
        await context.sh(script, timeout_s=_INSTALL_S)
    await context.machine.write(_PROGRAM, f'#!/bin/sh\nexec {place}/bin/stackyard "$@"', mode=0o755)
    return f"stackyard is in {place}, and {_PROGRAM} starts it."


async def _by_installer(context: Context, source: str) -> str:
    if not source.startswith(("https://", "http://")):
        raise UsageError(f"--source is the address of an installer, and `{source}` is none.")
    if not await context.succeeds("command -v curl"):
        await context.sh(f"{APT_GET} update && {APT_GET} install curl ca-certificates", timeout_s=_INSTALL_S)
    made = shlex.quote((await context.sh("mktemp -d /tmp/stackyard-XXXXXXXX")).strip())
    # Downloaded whole before a line of it is run: half an installer does half of what it should.
    await context.sh(f"curl -fsSL {shlex.quote(source)} -o {made}/install", timeout_s=120.0)
    user = shlex.quote(context.options.user or "")
    await context.sh(f"HOMESTAK_USER={user} bash {made}/install", timeout_s=_INSTALL_S)
    await context.sh(f"rm -rf {made}")
    return f"The installer from {source} has run."


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyInstall:
    """Looks whether what was installed works."""

    async def run(self, context: Context) -> ActionResult:
        """Ask it for its version and its tools, or homestak's own program for its parts."""
        if context.options.source is not None:
            said = await context.sh("homestak status", timeout_s=120.0)
            if missing := [part for part in _PARTS if part not in said]:
                raise PhaseFailedError(f"`homestak status` does not list {', '.join(missing)}.")
            return ActionResult(success=True, message=f"homestak is installed with {', '.join(_PARTS)}.")
        said = await read_json(context, f"{_PROGRAM} --version --json", timeout_s=120.0)
        version = str(said["version"])
        tools = (await read_json(context, f"{_PROGRAM} tools list --json", timeout_s=120.0))["tools"]
        engine = next(
            (tool for tool in tools if tool.get("name") in ("tofu", "terraform") and tool.get("path")), None
        )
        if engine is None:
            raise PhaseFailedError("stackyard is installed, and finds neither tofu nor terraform over there.")
        updates = {"stackyard_version": version, "engine": f"{engine['name']} {engine.get('version')}"}
        message = f"stackyard {version} runs, with {updates['engine']}."
        return ActionResult(success=True, message=message, context_updates=updates)
