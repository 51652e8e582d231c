"""The verbs of `stackyard infra` that OpenTofu performs by itself, with the credentials of the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.base.errors import UsageError
from stackyard.cli.command import Command
from stackyard.cli.commands.infra.options import ENGINE_SETTINGS, EngineCommand, run_options
from stackyard.cli.confirmation import can_ask
from stackyard.cli.lazy_module import pause_garbage_collection
from stackyard.cli.session import Session, pass_session
from stackyard.cli.stack_options import note_given_provider

if TYPE_CHECKING:
    from stackyard.cli.result import Result

__all__ = ["fmt", "fmt_check", "force_unlock", "init", "output", "state_list", "validate"]


def _run(session: Session, values: dict[str, Any], verb: str, *words: str) -> Result:
    with pause_garbage_collection():
        from stackyard.cli.runs.clusters.engine import EngineCall, run_engine  # lazy: the help needs none

    note_given_provider(values)
    call = EngineCall(verb=verb, words=(*words, *values["engine_words"]))
    return session.run(run_engine(session, values, call))


@click.command("init", cls=EngineCommand, context_settings=ENGINE_SETTINGS)
@run_options
@pass_session
def init(session: Session, /, **values: Any) -> Result:
    """Prepare `infrastructure/tofu` for OpenTofu itself: connect to the backend, install providers.

    \b
    stackyard infra init
    stackyard infra init -reconfigure         after a change of the backend
    stackyard infra init -migrate-state       the same, and move the state there
    stackyard infra init -upgrade

    The other verbs need no `init`: they prepare what they need by themselves.
    """  # noqa: D301 - click reads the control character
    return _run(session, values, "init", "-input=false")


@click.command("output", cls=EngineCommand, context_settings=ENGINE_SETTINGS)
@run_options
@pass_session
def output(session: Session, /, **values: Any) -> Result:
    """Show the outputs of a cluster: VM IDs, addresses, images, what to do next.

    \b
    stackyard infra output
    stackyard infra output -json node_addresses
    """  # noqa: D301 - click reads the control character
    return _run(session, values, "output")


@click.command("state-list", cls=EngineCommand, context_settings=ENGINE_SETTINGS)
@run_options
@pass_session
def state_list(session: Session, /, **values: Any) -> Result:
    """List the resources that the state of a cluster has."""
    return _run(session, values, "state list")


@click.command("force-unlock", cls=Command)
@click.argument("lock_id", required=False, envvar="LOCK_ID")
@run_options
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@pass_session
def force_unlock(session: Session, /, **values: Any) -> Result:
    """Remove a lock that a dead run left on the state of a cluster; the ID is in the error message.

    \b
    stackyard infra force-unlock 3f0e1c52-7a1e-4f0c-9a54-1b0f5f5f7d11

    A lock of a run that is still working protects the state: do not remove it. Locks of stackyard's own runs
    end with the run, and need no `force-unlock`.
    """  # noqa: D301 - click reads the control character
    lock_id = values["lock_id"]
    if not lock_id:
        raise UsageError("Name the lock: stackyard infra force-unlock LOCK_ID. The error message shows it.")
    if not values["yes"] and not can_ask(session):
        raise UsageError("There is no terminal to ask at: add --yes, if no run holds the lock any more.")
    if not values["yes"]:
        click.confirm(f"Remove the lock {lock_id}?", abort=True, err=True)
    return _run(session, values, "force-unlock", "-force", lock_id)


@click.command("validate", cls=EngineCommand, context_settings=ENGINE_SETTINGS)
@run_options
@pass_session
def validate(session: Session, /, **values: Any) -> Result:
    """Check that the code of a cluster is valid for OpenTofu and the provider."""
    return _run(session, values, "validate")


@click.command("fmt", cls=EngineCommand, context_settings=ENGINE_SETTINGS)
@run_options
@pass_session
def fmt(session: Session, /, **values: Any) -> Result:
    """Format the code of a cluster; what `cluster configure` writes is formatted already."""
    return _run(session, values, "fmt", "-recursive")


@click.command("fmt-check", cls=EngineCommand, context_settings=ENGINE_SETTINGS)
@run_options
@pass_session
def fmt_check(session: Session, /, **values: Any) -> Result:
    """Check that the code of a cluster is formatted; list the files that are not."""
    return _run(session, values, "fmt", "-check", "-recursive")
