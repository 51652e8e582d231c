"""The run of `stackyard gitops serve`."""

from __future__ import annotations

import asyncio
import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stackyard.base import events, serving
from stackyard.base.addresses import is_loopback
from stackyard.base.calendar_events import CalendarEvent, CalendarEventError, parse_calendar_event
from stackyard.base.errors import UsageError
from stackyard.cli.runs.gitops import open_context, open_context_of
from stackyard.clients.forge.failures import ForgeUnreachableError
from stackyard.controller.unit import notify_ready
from stackyard.gitops.actions import BaseIssues, FlowActions
from stackyard.gitops.forge_place import find_place
from stackyard.gitops.jobs import drift_job, report_job
from stackyard.gitops.receiver import LARGEST_BYTES, WEBHOOK
from stackyard.gitops.serve import ServicePlan, gitops_service
from stackyard.sources.site.store_choice import find_store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from stackyard.cli.session import Session
    from stackyard.gitops.context import GitopsContext

__all__ = ["SECRET_VARIABLE", "gitops_of_site", "make_service_plan", "read_secrets", "run_gitops_serve"]

SECRET_VARIABLE = "STACKYARD_GITOPS_WEBHOOK_SECRET"  # noqa: S105 - the name of a variable
_SHORTEST_SECRET = 16
# The same as those of the options of `stackyard gitops`.
_VARIABLES = {
    "forge": "STACKYARD_FORGE",
    "url": "STACKYARD_FORGE_URL",
    "repository": "STACKYARD_FORGE_REPOSITORY",
    "ca": "STACKYARD_FORGE_CA",
    "credentials": "STACKYARD_GITOPS_CREDENTIALS",
    "drift": "STACKYARD_GITOPS_DRIFT",
    "report": "STACKYARD_GITOPS_REPORT",
}
# Few forges send more than some webhooks at once.
_MOST_CONNECTIONS = 128


async def run_gitops_serve(
    session: Session, values: dict[str, Any], on_ready: Callable[[Mapping[str, Any]], None]
) -> None:
    """Serve until this is cancelled.

    Raises:
        UsageError: The options do not fit each other, or there is no secret.
        ForgeError: The forge refuses the webhook.
        StoreError: The store cannot be used.
        ListenError: The address cannot be listened on.
    """
    secrets, tls = read_secrets(), _read_tls(values)
    limits = serving.ServerLimits(max_connections=_MOST_CONNECTIONS, max_body_bytes=LARGEST_BYTES)
    async with open_context(session, values) as context:
        plan = make_service_plan(context, values, secrets)
        async with (
            gitops_service(plan) as service,
            serving.serve(
                service.handle, bind=values["bind"], port=values["port"], tls=tls, limits=limits
            ) as server,
        ):
            if values["webhook_url"] is not None:
                await _ensure_webhook(context, values["webhook_url"], secrets[0])
            on_ready(
                {
                    "url": server.url,
                    "port": server.port,
                    "webhook": values["webhook_url"] or f"{server.url}{WEBHOOK}",
                    "repository": plan.repository,
                }
            )
            notify_ready()
            await asyncio.Event().wait()


@contextlib.asynccontextmanager
async def gitops_of_site(site: Path, emit: events.Emit) -> AsyncIterator[serving.Handler]:
    """Give what answers webhooks for the repository that variables of the environment name.

    Raises:
        UsageError: It is not clear which repository, or there is no token or no secret.
        StoreError: The store cannot be used.
    """
    values = {name: os.environ.get(variable) for name, variable in _VARIABLES.items()}
    numbers = {"jobs": 4, "workers": 2, "reconcile": 300}
    secrets = read_secrets()
    given = {**values, **numbers}
    async with (
        open_context_of(find_store(site), given, emit) as context,
        gitops_service(make_service_plan(context, given, secrets)) as service,
    ):
        yield service.handle


def make_service_plan(
    context: GitopsContext, values: Mapping[str, Any], secrets: tuple[str, ...]
) -> ServicePlan:
    """Return what a server looks after; the forge need not answer yet."""
    return ServicePlan(
        repository=find_place(values["forge"], values["url"], values["repository"]).repository,
        forge=context.forge,
        store=context.store,
        actions=FlowActions(context),
        secrets=secrets,
        emit=context.emit,
        at_once=values["workers"],
        reconcile_every_s=float(values["reconcile"]),
        base=BaseIssues(context),
        times=[
            (event, job)
            for name, job in (("drift", drift_job()), ("report", report_job()))
            if (event := _read_event(name, values[name])) is not None
        ],
    )


async def _ensure_webhook(context: GitopsContext, url: str, secret: str) -> None:
    """Set the webhook up; a forge that is away has it from an earlier start, or is asked at the next one."""
    try:
        await context.forge.ensure_webhook(url, secret)
    except ForgeUnreachableError as err:
        text = f"The webhook was not set up: {err.detail} Until the next start, changes are found by asking."
        context.emit(events.LogLine(level=events.LogLevel.WARNING, source="gitops", text=text))


def _read_event(name: str, text: str | None) -> CalendarEvent | None:
    try:
        return None if text is None else parse_calendar_event(text)
    except CalendarEventError as err:
        raise UsageError(f"--{name}={text} is no calendar event: {err}.") from err


def read_secrets() -> tuple[str, ...]:
    """Return the secrets of the webhook, which are only ever in the environment.

    Raises:
        UsageError: There is none, or one that is soon guessed.
    """
    secrets = tuple(os.environ.get(SECRET_VARIABLE, "").split())
    if not secrets or min(map(len, secrets)) < _SHORTEST_SECRET:
        raise UsageError(
            f"{SECRET_VARIABLE} is not set, or shorter than {_SHORTEST_SECRET} characters.",
            remedy=f"Set it to a random text that the webhook of the forge has too: "
            f"export {SECRET_VARIABLE}=$(openssl rand -hex 32)",
        )
    return secrets


def _read_tls(values: Mapping[str, Any]) -> serving.Tls | None:
    """Return what to serve TLS with; None for plain HTTP, which only this machine may see.

    Raises:
        UsageError: Webhooks would cross a network in the clear, or one of the two files is missing.
        CertificateError: The certificate cannot be used.
    """
    cert, key = values["cert"], values["key"]
    if (cert is None) is not (key is None):
        raise UsageError("--cert and --key belong together.")
    if cert is not None:
        return serving.Tls(serving.read_certificate(Path(cert), Path(key)))
    if not is_loopback(values["bind"]):
        raise UsageError(
            f"Without a certificate, only this machine is served, and not {values['bind']}.",
            remedy="Give --cert and --key, or leave --bind out and let a reverse proxy serve TLS.",
        )
    return None
