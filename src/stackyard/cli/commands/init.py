"""`stackyard init`: a site to start with."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stackyard.base.errors import UsageError
from stackyard.cli.command import Command
from stackyard.cli.commands.lab.view import DEFAULT_NAME
from stackyard.cli.result import Result
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.cli.commands.lab.instances import Instance
    from stackyard.cli.secrets_hook import HookOutcome
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.sources.site.new_site import CreatedSite, LabAccess

__all__ = ["init"]


@click.command("init", cls=Command)
@click.argument("folder", metavar="DIR")
@click.option(
    "--lab", "lab_name", metavar="NAME", default=DEFAULT_NAME, help="The lab to create the site for."
)
@click.option("--no-hook", is_flag=True, help="Do not install the commit hook that checks for secrets.")
@pass_session
def init(session: Session, /, folder: str, lab_name: str, no_hook: bool) -> Result:
    """Create a working, commented site in DIR: a node, images, presets, an env, encrypted secrets.

    Its node is the running lab: the one of `stackyard lab up`, or the one that STACKYARD_LAB=URL names. If no
    lab runs, its node is the lab that `stackyard lab up` would start. SOPS encrypts the secrets for your age
    key; if you have none, the command creates one. The site contains your public SSH keys; if you have none,
    the command creates a key for the site. If DIR is in a git repository, each commit there is checked for
    secrets in clear from then on.
    """
    from stackyard.cli.commands.lab.instances import Instance  # lazy: asyncio, only here
    from stackyard.cli.secrets_hook import NO_HOOK, install_secrets_hook  # lazy: as above
    from stackyard.clients.ssh.user_keys import user_public_keys  # lazy: as above
    from stackyard.sources.site.new_site import start_site  # lazy: pydantic, cryptography, only here

    started = start_site(Path(folder), _lab_access(lab_name), ssh_keys=user_public_keys())
    is_running = Instance(lab_name).read() is not None
    hook = NO_HOOK if no_hook else session.run(install_secrets_hook(started.root))

    def show(writer: TextWriter) -> None:
        _show(writer, started, hook, is_lab_running=is_running)

    return Result(document=_document(started, hook), show=show)


def _lab_access(name: str) -> LabAccess:
    """Return how the lab is reached: the one that runs, else the one that would."""
    from stackyard.cli.commands.lab.instances import Instance  # lazy: asyncio, only here
    from stackyard.sources.site.new_site import LabAccess  # lazy: as above

    instance = Instance(name)
    record, wanted = instance.read(), os.environ.get("STACKYARD_LAB")
    if wanted and (record is None or record.ready["url"].rstrip("/") != wanted.rstrip("/")):
        known = f" The lab '{name}' runs at {record.ready['url']}." if record is not None else ""
        raise UsageError(
            f"STACKYARD_LAB names {wanted}, where no lab of this user called '{name}' runs.{known}",
            remedy="Start it with `stackyard lab up`, or name another with --lab.",
        )
    ready = _future_lab(instance) if record is None else record.ready
    ports = ready["ssh_ports"]
    return LabAccess(
        url=ready["url"],
        fingerprint=ready["fingerprint"],
        api_token=ready["api_token"],
        password=ready["password"],
        nodes=tuple(ready["nodes"]),
        ssh_ports=tuple(int(ports.get(node, ready["ssh_port"] or 22)) for node in ready["nodes"]),
    )


def _future_lab(instance: Instance) -> Mapping[str, Any]:
    """Return what a lab will say once it is started without options: what identifies it is created now."""
    from pvelab import expected_ready  # lazy: as above
    from stackyard.cli.commands.lab.launch import LabRequest  # lazy: for a lab that does not run
    from stackyard.cli.commands.lab.options import lab_options  # lazy: as above

    instance.prepare()
    return expected_ready(lab_options(LabRequest(), instance.folder / "identity"))


def _document(started: CreatedSite, hook: HookOutcome) -> dict[str, Any]:
    return {
        "site": str(started.root),
        "files": list(started.files),
        "age_recipient": started.recipient,
        "age_key_made": None if started.new_key is None else str(started.new_key),
        "ssh_key_made": None if started.ssh_key is None else str(started.ssh_key),
        "hook": None if hook.path is None else str(hook.path),
    }


def _show(writer: TextWriter, started: CreatedSite, hook: HookOutcome, *, is_lab_running: bool) -> None:
    root = started.root
    writer.line(f"Made a site in {root}: {len(started.files)} files, all valid.", style="green")
    if started.new_key is not None:
        writer.line(
            f"Made an age key for you in {started.new_key}: back it up, only it decrypts your secrets."
        )
    if started.ssh_key is not None:
        writer.line(f"Made an SSH key for the site in {started.ssh_key}: it logs in to your guests.")
    hook.show(writer)
    writer.line()
    writer.line("Next:")
    for command, what in (
        (f"stackyard --chdir {root} explain dev", "every value, and where it comes from"),
        *(() if is_lab_running else (("stackyard lab up", "a simulated Proxmox VE"),)),
        (f"stackyard --chdir {root} plan dev", "what would change"),
        (f"stackyard --chdir {root} apply dev", "create the guests"),
    ):
        writer.line(f"  {command:<44} # {what}")
