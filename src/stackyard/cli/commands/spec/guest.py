"""`stackyard spec get` and `spec apply`: what a guest does with its own spec."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stackyard.base.errors import UsageError
from stackyard.cli.command import Command
from stackyard.cli.result import Result
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from stackyard.controller.guest import SpecSource

__all__ = ["apply", "get"]

_SETTINGS = "/etc/stackyard/guest.env"
_SAVED = "/var/lib/stackyard/spec.yaml"


@click.command("get", cls=Command)
@click.option("--server", metavar="URL", help="The controller: https://HOST:PORT (also: STACKYARD_SERVER).")
@click.option(
    "--identity",
    metavar="NAME",
    help="The identity of this guest (also: STACKYARD_IDENTITY; default: the host name).",
)
@click.option("--token-file", metavar="FILE", help="A file with the token (also: STACKYARD_TOKEN).")
@click.option(
    "--pin", metavar="sha256//...", help="The SHA-256 of the controller's key (also: STACKYARD_PIN)."
)
@click.option("--fingerprint", metavar="AB:CD:...", help="The SHA-256 of the controller's certificate.")
@click.option("--ca-cert", metavar="FILE", help="Trust these authorities (PEM) instead of the system's.")
@click.option("--insecure", is_flag=True, help="Trust any controller; for tests only.")
@click.option(
    "--settings",
    default=_SETTINGS,
    show_default=True,
    metavar="FILE",
    help="The file in which cloud-init wrote these settings.",
)
@click.option(
    "--out",
    default=_SAVED,
    show_default=True,
    metavar="FILE",
    help="The file to write the spec to; - prints it.",
)
def get(out: str, **given: Any) -> Result:
    """Fetch the spec of this guest from the controller, and keep the previous one as FILE.prev.

    Values that no option sets come from the environment, then from the settings that cloud-init wrote. The
    token is sent only to a controller with the right pin, fingerprint or authority.

    \b
    stackyard spec get
    stackyard spec get --server https://controller:44443 --identity web1 --pin sha256//... --out -

    Exit status: 0 fetched, 1 refused (no token, or a wrong one), 2 unreachable or no such spec, 3 invalid
    spec.
    """  # noqa: D301 - click reads the control character
    from stackyard.controller.guest import fetch_spec, save_spec  # lazy: ssl, only when this verb runs
    from stackyard.sources.site.apply_script import spec_text  # lazy: as above

    place = _place(given)
    found = fetch_spec(place)
    text = spec_text(found)
    document = {"identity": place.identity, "server": place.server, "spec": found}
    if out == "-":
        return Result(document=document, show=lambda writer: writer.lines(text.rstrip()))
    is_new = save_spec(Path(out), text)
    said = f"Saved {out}." if is_new else f"{out} is the same as before."
    return Result(
        document={**document, "saved": out, "changed": is_new}, show=lambda writer: writer.line(said)
    )


def _place(given: dict[str, Any]) -> SpecSource:
    from stackyard.controller.guest import (  # lazy: ssl, only when this verb runs
        SpecSource,
        read_environment,
    )

    said = read_environment()
    kept = _read_settings(Path(given["settings"]))
    token = said["token"] or kept.get("STACKYARD_TOKEN", "")
    if given["token_file"] is not None:
        from stackyard.base.files import read_text  # lazy: few guests have it in a file of its own

        token = read_text(Path(given["token_file"])).strip()
    server = given["server"] or said["server"] or kept.get("STACKYARD_SERVER", "")
    if not server:
        raise UsageError("No controller is named: give --server, or set STACKYARD_SERVER.")
    is_known_otherwise = given["fingerprint"] or given["ca_cert"] or given["insecure"]
    pin = given["pin"] or ("" if is_known_otherwise else said["pin"] or kept.get("STACKYARD_PIN", ""))
    return SpecSource(
        server=server.rstrip("/"),
        identity=given["identity"] or said["identity"] or kept.get("STACKYARD_IDENTITY", "") or _host_name(),
        token=token,
        pin=pin or None,
        fingerprint=given["fingerprint"],
        ca_cert=None if given["ca_cert"] is None else Path(given["ca_cert"]),
        is_insecure=given["insecure"],
    )


def _read_settings(path: Path) -> dict[str, str]:
    """Return the settings that cloud-init wrote, none where there are none that we may read."""
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return {}
    return {name: value for name, mark, value in (line.partition("=") for line in lines) if mark}


def _host_name() -> str:
    import socket  # lazy: only a guest that was told no name

    return socket.gethostname().partition(".")[0]


@click.command("apply", cls=Command)
@click.argument("file", default=_SAVED, required=False)
@click.option("--dry-run", is_flag=True, help="Print the script that would run, and run nothing.")
@click.option(
    "--root",
    metavar="DIR",
    help="Write files below this folder, and only record the commands that would run.",
)
@pass_session
def apply(session: Session, file: str, dry_run: bool, root: str | None) -> Result:
    """Apply the spec in FILE to this machine: packages, users, keys, SSH, services.

    FILE is what `stackyard spec get` saved (/var/lib/stackyard/spec.yaml). The command also sets the host
    name and the time zone. You can apply it again at any time: settings that already match do not change.
    complete.json or failed.json in /var/lib/stackyard records the result.

    Exit status: 0 applied, 1 there is no such spec, 2 it could not be applied, 3 it is not valid.
    """
    from stackyard.controller.guest import load_spec  # lazy: ssl, only when this verb runs
    from stackyard.sources.site.apply_script import apply_script  # lazy: as above

    found = load_spec(Path(file))
    script = apply_script(found)
    if dry_run:
        document = {"spec": found, "script": script, "dry_run": True}
        return Result(document=document, show=lambda writer: writer.lines(script.rstrip()))
    from stackyard.controller.apply_script import run_script  # lazy: asyncio, only when something is run

    elapsed_s = session.run(run_script(script, root=root, emit=session.emit))
    document = {
        "phase": "config",
        "success": True,
        "spec": found["identity"]["hostname"],
        "duration_seconds": round(elapsed_s, 1),
        "packages": found["platform"]["packages"],
        "services_enabled": found["platform"]["services"]["enable"],
        "services_disabled": found["platform"]["services"]["disable"],
        "users": [user["name"] for user in found["access"]["users"]],
    }
    said = f"This machine is what {file} says."
    return Result(document=document, show=lambda writer: writer.line(said, style="green"))
