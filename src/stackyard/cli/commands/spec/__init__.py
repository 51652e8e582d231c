"""`stackyard spec`: what guests should be once they run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.base.errors import InvalidInputError
from stackyard.base.suggestions import did_you_mean
from stackyard.cli.command import LazyCommand, group
from stackyard.cli.commands.site import show_warnings, site_option
from stackyard.cli.result import Result
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from stackyard.base.diagnostics import Diagnostic
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.sources.site.load import Site

__all__ = ["spec"]


_LATER = {
    "apply": LazyCommand(
        module="stackyard.cli.commands.spec.guest",
        name="apply",
        help="Apply the spec in FILE to this machine: packages, users, keys, SSH, services.",
    ),
    "get": LazyCommand(
        module="stackyard.cli.commands.spec.guest",
        name="get",
        help="Fetch the spec of this guest from the controller, and keep the previous one as FILE.prev.",
    ),
}


@group("spec", later=_LATER)
def spec() -> None:
    """Inspect and apply specs: users, packages, services and posture of a guest."""


@spec.command("list")
@site_option
def list_specs(said: str | None) -> Result:
    """Show the names of all specs."""
    from stackyard.sources.site.discovery import find_site  # lazy: only when this verb runs
    from stackyard.sources.site.names import list_names  # lazy: as above

    names = list_names(find_site(said))["specs"]

    def show(writer: TextWriter) -> None:
        for name in names:
            writer.line(name)

    return Result(document={"specs": names}, show=show)


@spec.command("show")
@click.argument("name")
@click.option("--ansible", is_flag=True, help="Print it as Ansible variables.")
@site_option
@pass_session
def show_spec(session: Session, /, name: str, ansible: bool, said: str | None) -> Result:
    """Show a spec as the guest receives it, with its posture, all users and all keys.

    The packages come from the site, the spec and the posture. A guest receives the same spec whether it is
    configured from here or fetches the spec itself.
    """
    from stackyard.sources.site.resolver import ConfigResolver  # lazy: pydantic, only when this verb runs

    resolver = ConfigResolver(said, emit=session.emit)
    document: dict[str, Any] = resolver.resolve_spec_vars(name) if ansible else resolver.resolve_spec(name)

    def show(writer: TextWriter) -> None:
        import yaml  # lazy: for this text alone

        for line in yaml.safe_dump(document, sort_keys=False, allow_unicode=True).splitlines():
            writer.line(line)

    return Result(document=document, show=show)


@spec.command("validate")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@site_option
def validate(names: tuple[str, ...], said: str | None) -> Result:
    """Check the named specs, or all specs: their files, and the postures and keys that they name."""
    from stackyard.sources.site.load import Site  # lazy: pydantic, as above
    from stackyard.sources.site.names import list_names  # lazy: only when this verb runs

    site = Site.open(said)
    known = list_names(site.root)["specs"]
    wanted = names or tuple(known)
    _require(site, wanted, known)
    found = [finding for finding in site.found if _concerns(finding, wanted)]
    errors = [finding for finding in found if finding in site.found.errors]
    if errors:
        problems = "1 problem" if len(errors) == 1 else f"{len(errors)} problems"
        raise InvalidInputError(f"The specs of {site.root} have {problems}.", tuple(found))
    return Result(
        document={"specs": list(wanted), "warnings": [finding.document() for finding in found]},
        show=lambda writer: _show_valid(writer, wanted, found),
    )


def _require(site: Site, wanted: tuple[str, ...], known: list[str]) -> None:
    from stackyard.sources.site.resolver import NotInSiteError  # lazy: as above

    for name in wanted:
        if name not in known:
            raise NotInSiteError(f"There is no spec '{name}' in {site.root}.{did_you_mean(name, known)}")


def _concerns(finding: Diagnostic, names: tuple[str, ...]) -> bool:
    path = "" if finding.where is None else finding.where.path
    return any(path.endswith(f"specs/{name}.yaml") for name in names)


def _show_valid(writer: TextWriter, names: tuple[str, ...], warnings: list[Diagnostic]) -> None:
    show_warnings(writer, warnings)
    writer.line(f"Valid: {', '.join(names) or 'there are no specs'}.", style="green")
