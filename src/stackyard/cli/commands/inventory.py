"""`stackyard inventory`: what runs where, for Ansible."""

from __future__ import annotations

import os
import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stackyard.base.errors import UsageError
from stackyard.cli.command import group
from stackyard.cli.completions import complete_hosts, complete_targets
from stackyard.cli.result import Result
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from collections.abc import Callable

    from stackyard.cli.runs.target import ChosenTarget
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.inventory import Inventory
    from stackyard.inventory.contract import Origin

__all__ = ["inventory"]

_FORMS = ("json", "yaml", "list")


@group("inventory")
def inventory() -> None:
    """Render, publish and read the inventory of a target: its guests and addresses, for Ansible."""


def _target(function: Callable[..., Any]) -> Callable[..., Any]:
    options = (
        click.argument("target", shell_complete=complete_targets),
        click.option(
            "-H",
            "--host",
            metavar="NODE",
            shell_complete=complete_hosts,
            help="The node, if the target does not name one.",
        ),
        click.option(
            "--site",
            metavar="DIR",
            help="The folder of the site (default: search from the current folder upwards).",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


_form = click.option(
    "--format",
    "form",
    type=click.Choice(_FORMS),
    default=_FORMS[0],
    show_default=True,
    help="The document, Ansible's YAML, or the output of an Ansible inventory script (`--list`).",
)


@inventory.command("render")
@_target
@_form
@click.option("--out", metavar="FILE", help="Write to this file.")
@pass_session
def render(session: Session, /, **values: Any) -> Result:
    """Print the current inventory of TARGET from its input and its state, without publishing it.

    \b
    stackyard inventory render dev --format yaml > inventory.yml
    """  # noqa: D301 - click reads the control character
    if _is_stack(values):
        from stackyard.cli.runs.stacks.inventory import run_stack_render  # lazy: only when this verb runs

        return session.run(run_stack_render(session, values))
    from stackyard.path.publish import inventory_of  # lazy: pydantic, only when this verb runs

    chosen = _choose_target(session, values)
    found = inventory_of(chosen.store, chosen.resolved)
    return _make_result(found, values["form"], values["out"])


@inventory.command("show")
@_target
@_form
@click.option("--from", "place", metavar="PLACE", help="Where it was published (default: the usual place).")
@pass_session
def show(session: Session, /, **values: Any) -> Result:
    """Print the last published inventory, and whether it is current.

    It is `current`, or an `apply` is `owed`, or it is `unknown` because the input or the state cannot be
    read. It is never reported as current without proof.
    """
    from stackyard.inventory import IncompleteError, freshness  # lazy: only when this verb runs

    if _is_stack(values):
        raise UsageError(
            "The inventory of a stack is a file in .stackyard/inventory.d, which Ansible reads as it is.",
            remedy=f"Print it from the state: stackyard inventory render {values['target']}",
        )
    inventory_target, now = _find_published(session, values)
    published = inventory_target.read()
    if published is None:
        raise IncompleteError(
            f"No inventory of {values['target']} was published there.",
            remedy="Apply the target, or publish with `stackyard inventory publish`.",
        )
    printed = _make_result(published, values["form"], None)
    return Result(
        document={
            **printed.document,
            "freshness": freshness(published, now).value,
            "published": asdict(published.origin),
            "now": None if now is None else asdict(now),
        },
        show=printed.show,
    )


def _find_published(session: Session, values: dict[str, Any]) -> tuple[Any, Origin | None]:
    """Return where an inventory was published, and what one would come from now, if that is known."""
    from stackyard.base.errors import StackyardError  # lazy: only when this verb runs
    from stackyard.inventory import open_inventory_target  # lazy: as above
    from stackyard.path.publish import origin_of  # lazy: as above

    try:
        chosen = _choose_target(session, values)
        return _inventory_target(chosen, values["place"]), origin_of(chosen.store, chosen.resolved)
    except StackyardError:
        # A store that is down makes nothing current; what was published can be read all the same.
        place = values["place"] or _find_default_path(values["target"])
        if place is None:
            raise
        return open_inventory_target(place), None


def _find_default_path(target: str) -> Path | None:
    """Return where the inventory of a deployment object is, which is known without fetching it."""
    if target.partition(":")[0] != "deployment":
        return None
    from stackyard.path.deployment import DeploymentSource  # lazy: only when its store is down
    from stackyard.path.publish import place_of  # lazy: as above

    source = DeploymentSource.find()
    return place_of(source.place.base, source.target(source.names()[0]))


@inventory.command("validate")
@click.argument("file")
def validate(file: str) -> Result:
    """Check a published document against its schema and version."""
    from stackyard.base.errors import FileError  # lazy: as below
    from stackyard.inventory.contract import parse  # lazy: only when this verb runs

    path = Path(file)
    try:
        found = parse(path.read_bytes())
    except OSError as err:
        raise FileError.from_os_error(err, "read", path) from err
    count = sum(1 for _ in found.hosts())
    return Result(
        document={"file": file, "schema_version": found.document["schema_version"], "guests": count},
        show=lambda writer: writer.line(f"{file} is valid: {count} {'guest' if count == 1 else 'guests'}."),
    )


@inventory.command("publish")
@_target
@click.option("--to", "place", metavar="PLACE", help="A folder, or s3://bucket/prefix?endpoint=URL.")
@pass_session
def publish(session: Session, /, **values: Any) -> Result:
    """Publish the complete inventory of TARGET, or nothing.

    The command refuses, and the previous inventory stays, unless the state has exactly the guests that should
    exist and every running guest has an address. `apply` publishes by itself.

    The inventory of a stack is a file of its own in the folder .stackyard/inventory.d, and Ansible reads the
    files of all stacks with `-i .stackyard/inventory.d`.
    """
    if _is_stack(values):
        from stackyard.cli.runs.stacks.inventory import run_stack_publish  # lazy: only when this verb runs

        return session.run(run_stack_publish(session, values))
    from stackyard.path.publish import inventory_of  # lazy: pydantic, only when this verb runs

    chosen = _choose_target(session, values)
    done = _inventory_target(chosen, values["place"]).publish(inventory_of(chosen.store, chosen.resolved))
    said = f"Published at {done.where}." if done.is_new else f"{done.where} is up to date."
    return Result(
        document={"where": done.where, "is_new": done.is_new}, show=lambda writer: writer.line(said)
    )


@inventory.command("script")
@_target
@click.option("--out", metavar="FILE", required=True, help="The file to write.")
@pass_session
def script(session: Session, /, **values: Any) -> Result:
    """Write an inventory script for `ansible -i` that returns the current inventory on each call.

    \b
    stackyard inventory script dev --out inventory.sh
    ansible-playbook -i inventory.sh site.yml
    """  # noqa: D301 - click reads the control character
    from stackyard.base.files import replace_file  # lazy: only when this verb runs

    target = values["target"] if _is_stack(values) else str(_choose_target(session, values).resolved.target)
    command = ["stackyard", "--chdir", os.getcwd(), "inventory", "render", target]
    for name in ("host", "site"):
        command += [f"--{name}", values[name]] if values[name] else []
    text = (
        "#!/bin/sh\n"
        "# A dynamic inventory for Ansible, from `stackyard inventory script`.\n"
        'case "$1" in --host) echo "{}"; exit 0 ;; esac\n'
        f"exec {shlex.join([*command, '--format', 'list'])}\n"
    )
    path = Path(values["out"])
    replace_file(path, text.encode())
    path.chmod(0o755)
    return Result(document={"file": str(path)}, show=lambda writer: writer.line(f"Written to {path}."))


def _is_stack(values: dict[str, Any]) -> bool:
    """Return whether the target is a stack.

    Raises:
        UsageError: It is, and an option is given that is for other targets.
    """
    if not values["target"].startswith("stack:"):
        return False
    for name, option in (("host", "-H"), ("site", "--site")):
        if values[name]:
            raise UsageError(f"{option} is not for stacks: {values['target']} says which one is meant.")
    return True


def _choose_target(session: Session, values: dict[str, Any]) -> ChosenTarget:
    from stackyard.cli.runs.target import ChosenTarget  # lazy: pydantic, only when a verb runs

    return ChosenTarget(session, values)


def _inventory_target(chosen: ChosenTarget, place: str | None) -> Any:
    from stackyard.inventory import open_inventory_target  # lazy: only when a verb runs
    from stackyard.path.publish import inventory_target_of  # lazy: as above

    return (
        open_inventory_target(place) if place else inventory_target_of(chosen.store, chosen.resolved.target)
    )


def _make_result(found: Inventory, form: str, out: str | None) -> Result:
    import json  # lazy: only when a verb runs

    from stackyard.inventory.ansible import as_list, as_yaml  # lazy: as above

    if form == "yaml":
        text = as_yaml(found)
    else:
        # A program reads it, or a person: in ASCII it is the same to both, and steers no terminal.
        document = as_list(found) if form == "list" else found.document
        text = json.dumps(document, indent=2, sort_keys=form != "list") + "\n"
    if out is not None:
        from stackyard.base.files import replace_file  # lazy: as above

        replace_file(Path(out), text.encode())

    def show(writer: TextWriter) -> None:
        writer.lines(f"Written to {out}." if out is not None else text.removesuffix("\n"))

    return Result(document={"inventory": dict(found.document), "file": out}, show=show)
