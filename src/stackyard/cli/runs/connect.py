"""The run of `stackyard connect`, and what a human and a program see of it."""

from __future__ import annotations

import dataclasses
import os
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stackyard.base import events
from stackyard.base.errors import ExitStatus, UsageError
from stackyard.base.suggestions import did_you_mean
from stackyard.cli.connect_prompts import Dialog, NotConfirmedError
from stackyard.cli.result import Result
from stackyard.cli.views.connect import describe_connected, show_connected, show_plan
from stackyard.clients import proxmox
from stackyard.clients.proxmox.access import PresentAccess, plan_access
from stackyard.clients.proxmox.server_certificate import read_server_certificate
from stackyard.clients.proxmox.sign_in import read_realms
from stackyard.clients.ssh.user_keys import user_public_keys
from stackyard.guard.features import DEFAULT_FEATURES, Feature, list_privileges
from stackyard.operator.connect.access import make_access_request
from stackyard.operator.connect.failures import TokenExistsError
from stackyard.operator.connect.model import ConnectRequest
from stackyard.operator.connect.run import connect, plan_connection
from stackyard.operator.preflight import inspect, subject_of
from stackyard.sources.site import ConfigResolver
from stackyard.sources.site.discovery import SITE_FILE, VARIABLE

if TYPE_CHECKING:
    from stackyard.cli.session import Session
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.clients.proxmox.access import AccessCall
    from stackyard.operator.connect.model import Connected, ConnectPlan
    from stackyard.operator.preflight import PreflightReport

__all__ = ["run_connect"]

_PORT = 8006


def run_connect(session: Session, values: dict[str, Any]) -> Result:
    """Connect what the options name.

    Raises:
        StackyardError: It cannot be connected; unless the error says otherwise, nothing was changed.
    """
    features = _read_features(values["features"])
    url = _complete_url(values["url"])
    if values["prints"]:
        return _print_commands(url, features, values["token_name"])
    dialog = Dialog(session)
    shown = session.run(read_server_certificate(url))
    request = _make_request(dialog, url, dialog.trust(url, shown, values["fingerprint"]), features, values)
    plan = _make_plan(session, dialog, request)
    show_plan(dialog.writer(), plan)
    if not plan.changes_nothing and not values["yes"]:
        _confirm(dialog)
    done = session.run(_perform(session, plan))
    reports = session.run(_inspect_nodes(session, done))
    return Result(
        document={**describe_connected(done, reports), "certificate": shown.document()},
        show=lambda writer: show_connected(writer, done, reports),
        status=_status(done, reports),
    )


def _make_request(
    dialog: Dialog, url: str, pin: str | None, features: tuple[Feature, ...], values: dict[str, Any]
) -> ConnectRequest:
    realms = dialog.session.run(read_realms(url, proxmox.Trust(fingerprint=pin)))
    credentials, caller = dialog.sign_in(url, pin, realms, values)
    return ConnectRequest(
        root=_find_root(values["site"]),
        url=url,
        fingerprint=pin,
        credentials=credentials,
        caller=caller,
        features=features,
        token_name=values["token_name"],
        nodes=tuple(_split(values["nodes"])),
        alias=values["alias"],
        datastore=values["datastore"],
        file_datastore=values["file_datastore"],
        renews=values["renew_token"],
        overwrites=values["overwrite"],
        adds_content=values["add_content"],
    )


def _confirm(dialog: Dialog) -> None:
    """Ask a user at a terminal; a script is not asked."""
    if dialog.is_terminal and not dialog.confirm("Do this?", default=True):
        raise NotConfirmedError("Nothing was changed, on the cluster or here.")


def _make_plan(session: Session, dialog: Dialog, request: ConnectRequest) -> ConnectPlan:
    try:
        return session.run(_read_and_plan(session, request))
    except TokenExistsError as err:
        # Somebody at a terminal can say at once what a script says with an option.
        if not dialog.is_terminal or not dialog.confirm(
            f"{err.detail} Replace it (its old secret stops working)?"
        ):
            raise
    return session.run(_read_and_plan(session, dataclasses.replace(request, renews=True)))


async def _read_and_plan(session: Session, request: ConnectRequest) -> ConnectPlan:
    with events.step(session.emit, "survey", f"Reading {request.url}"):
        return await plan_connection(request)


async def _perform(session: Session, plan: ConnectPlan) -> Connected:
    with events.step(session.emit, "connect", f"Connecting {plan.request.url}"):
        return await connect(plan, user_public_keys())


async def _inspect_nodes(session: Session, done: Connected) -> tuple[PreflightReport, ...]:
    resolver = ConfigResolver(str(done.plan.site.root))
    names = done.plan.site.nodes.values()
    return tuple([await inspect(subject_of(resolver, name), emit=session.emit) for name in names])


def _status(done: Connected, reports: tuple[PreflightReport, ...]) -> ExitStatus:
    """Return what a shell gets: a token that was asked to do less is not asked for more."""
    wanted = {Feature.GUESTS, Feature.IMAGES} <= set(done.plan.request.features)
    for report in reports:
        codes = {finding.kind.code for finding in report.errors}
        if codes and (wanted or codes != {"E-PREFLIGHT-PRIVILEGE"}):
            return report.exit_status
    return ExitStatus.DONE


def _read_features(given: tuple[str, ...]) -> tuple[Feature, ...]:
    words = _split(given)
    names = [feature.value for feature in Feature]
    for word in words:
        if word not in names:
            raise UsageError(
                f"--feature has no `{word}`.{did_you_mean(word, names)} There are {', '.join(names)}."
            )
    return tuple(feature for feature in Feature if feature.value in words) if words else DEFAULT_FEATURES


def _split(given: tuple[str, ...]) -> list[str]:
    return [word.strip() for text in given for word in text.split(",") if word.strip()]


def _complete_url(given: str) -> str:
    """Return an address with scheme and port; somebody who types only a host means the web interface.

    Raises:
        EndpointError: It is no address of a server.
    """
    if "://" not in given:
        host = f"[{given}]" if given.count(":") > 1 and not given.startswith("[") else given
        has_port = re.search(r"(\]|^[^:]+):[0-9]+$", host) is not None
        given = f"https://{host}" if has_port else f"https://{host}:{_PORT}"
    # What a browser shows behind the port is no part of it.
    return proxmox.Connection(endpoint=given, credentials=proxmox.Ticket(ticket="", csrf_token="")).base_url()


def _find_root(said: str | None) -> Path:
    """Return the folder of the site: the named one, the one that we are in, else this folder."""
    named = said or os.environ.get(VARIABLE)
    if named:
        return Path(os.path.abspath(named))
    here = Path(os.path.abspath("."))
    return next((folder for folder in (here, *here.parents) if (folder / SITE_FILE).is_file()), here)


def _print_commands(url: str, features: tuple[Feature, ...], token: str) -> Result:
    # Version 9 knows VM.GuestAgent.Audit in place of VM.Monitor, and refuses a role with one that it lacks.
    new, old = (
        _plan_commands(features, token, left_out) for left_out in ("VM.Monitor", "VM.GuestAgent.Audit")
    )
    token_id = make_access_request(token, ()).token_id
    follow = f"stackyard connect {shlex.quote(url)} --token {shlex.quote(token_id)}"
    needed = [one for one in list_privileges(features) if one.privilege != "VM.Monitor"]

    def show(writer: TextWriter) -> None:
        writer.line(
            "# Run these as root on a node of Proxmox VE 9. Nothing was changed. What each privilege is for:"
        )
        for one in needed:
            writer.line(f"#   {one.privilege:<27} {one.why} ({one.feature.value})")
        for call in new:
            writer.line(call.command)
        writer.line("# On Proxmox VE 8, the first command is:")
        writer.line(f"#   {old[0].command}")
        writer.line(
            "# The fourth shows the secret of the token once. Then connect with it; the secret is asked for:"
        )
        writer.line(f"#   {follow}")

    document = {
        "commands": [call.command for call in new],
        "commands_pve_8": [call.command for call in old],
        "privileges": [one.document() for one in needed],
        "next": follow,
    }
    return Result(document=document, show=show)


def _plan_commands(features: tuple[Feature, ...], token: str, left_out: str) -> tuple[AccessCall, ...]:
    needed = {one.privilege for one in list_privileges(features)} - {left_out}
    return plan_access(make_access_request(token, tuple(sorted(needed))), PresentAccess())
