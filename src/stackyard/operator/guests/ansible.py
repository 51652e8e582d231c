"""The site's own playbook in place of our script, run by ansible-runner: an external program.

It gets everything from private files: where the guest is, its host key, and its variables. A
guest that is reached through another machine is reached here by a port of our loopback that leads there, so
that Ansible needs none of the credentials of that machine.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shlex
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from stackyard.base import events, files, process
from stackyard.inventory.ansible import mark_unsafe
from stackyard.operator.guests.phases import GuestConfigError, last_lines
from stackyard.path.ssh_login import AGENT_VARIABLE
from stackyard.sources.site.specs import spec_variables

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from stackyard.clients import ssh
    from stackyard.operator.guests.context import GuestContext
    from stackyard.sources.site.load import Site

__all__ = ["AnsibleMissingError", "find_playbook", "run_playbook"]

_PROGRAM = "ansible-runner"
_PLAYBOOK = Path("playbooks") / "config-apply.yml"
_DEFAULT_FOLDER = "ansible"


class AnsibleMissingError(process.ProgramMissingError):
    """The site has a playbook for its guests, and ansible-runner is not on this machine."""

    code = "E-ANSIBLE-MISSING"
    summary = "ansible-runner is not installed"
    default_remedy = (
        "Install it beside Ansible (`pipx install ansible-core && pipx inject --include-apps ansible-core "
        "ansible-runner`), or take playbooks/config-apply.yml away: then stackyard applies specs itself."
    )


def find_playbook(site: Site) -> Path | None:
    """Return the site's playbook that configures guests, None where it has none."""
    said = site.settings.defaults.ansible
    path = site.root / Path(said or _DEFAULT_FOLDER).expanduser() / _PLAYBOOK
    if path.is_file():
        return path
    if said is not None:
        raise GuestConfigError(
            f"site.yaml says `ansible: {said}`, and there is no {_PLAYBOOK} in that folder.",
            remedy="Correct the folder, or leave it out: then stackyard applies specs itself.",
        )
    return None


async def run_playbook(
    playbook: Path, shell: ssh.Shell, document: Mapping[str, Any], ctx: GuestContext, *, emit: events.Emit
) -> None:
    """Run a playbook against the guest that we are logged in to.

    Raises:
        AnsibleMissingError: ansible-runner is not installed.
        GuestConfigError: The playbook failed; the error ends with what it said last.
        SshError: There is no way to the guest.
    """
    guest = document["identity"]["hostname"]
    async with _place(shell, ctx) as place:
        with tempfile.TemporaryDirectory(prefix="stackyard-ansible-") as folder:
            _write(Path(folder), guest, place, document)
            await _run(Path(folder), playbook, guest, ctx, emit)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where Ansible finds the guest, and by which key it knows it."""

    host: ssh.Host
    address: str
    port: int
    host_key: str


@contextlib.asynccontextmanager
async def _place(shell: ssh.Shell, ctx: GuestContext) -> AsyncIterator[_Place]:
    host, key = shell.host, shell.host_key
    if host.via is None:
        yield _Place(host=host, address=host.address, port=host.port, host_key=key)
        return
    jump = await ctx.jumps.shell(host.via)
    async with jump.forward_port(host.address, host.port) as port:
        yield _Place(host=host, address="127.0.0.1", port=port, host_key=key)


def _write(folder: Path, guest: str, place: _Place, document: Mapping[str, Any]) -> None:
    """Write what ansible-runner reads; the folder is for us alone, and so is each file."""
    for name in ("inventory", "env"):
        (folder / name).mkdir(mode=0o700)
    # It is known by its key, whatever it is called on this machine.
    _put(folder / "known_hosts", f"{guest} {place.host_key}\n".encode())
    options = (
        f"-F none -o UserKnownHostsFile={folder}/known_hosts -o GlobalKnownHostsFile=/dev/null "
        f"-o StrictHostKeyChecking=yes -o HostKeyAlias={guest}"
    )
    for path in place.host.key_files:
        options += f" -o {shlex.quote(f'IdentityFile={path}')}"
    variables: dict[str, Any] = {
        "ansible_host": place.address,
        "ansible_port": place.port,
        "ansible_user": place.host.username,
        "ansible_become": place.host.username != "root",
        "ansible_ssh_common_args": options,
    }
    _put(folder / "inventory" / "hosts.json", orjson.dumps({"all": {"hosts": {guest: variables}}}))
    # What a site says is no template: without a playbook of its own, it reaches the guest as it is.
    _put(folder / "env" / "extravars", orjson.dumps(mark_unsafe(spec_variables(dict(document)))))
    _put(folder / "env" / "settings", orjson.dumps({"suppress_env_files": True}))


def _put(path: Path, data: bytes) -> None:
    files.replace_file(path, data)


async def _run(folder: Path, playbook: Path, guest: str, ctx: GuestContext, emit: events.Emit) -> None:
    project = playbook.parent.parent
    environment = {"ANSIBLE_NOCOLOR": "1", "ANSIBLE_RETRY_FILES_ENABLED": "0"}
    if AGENT_VARIABLE in os.environ:
        environment[AGENT_VARIABLE] = os.environ[AGENT_VARIABLE]
    command = process.Command(
        argv=(
            *(_PROGRAM, "run", str(folder)),
            *("--project-dir", str(project), "--playbook", str(_PLAYBOOK), "--ident", "run"),
        ),
        env=process.environment(environment),
        timeout_s=ctx.patience.apply_s,
        redactor=ctx.redactor,
    )

    def tell(_stream: process.Stream, line: str) -> None:
        if line.strip():
            emit(events.LogLine(level=events.LogLevel.INFO, source=guest, text=ctx.redactor(line)))

    try:
        await process.run(command, tell)
    except process.ProgramMissingError as err:
        raise AnsibleMissingError(f"{playbook} is there, and {_PROGRAM} is not on the PATH.") from err
    except process.ProcessFailedError as err:
        said = err.stdout if err.stdout.strip() else err.stderr
        raise GuestConfigError(f"{playbook.name} failed: {last_lines(said)}") from err
