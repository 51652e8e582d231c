"""`stackyard spec`: what guests should be once they run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.cli.command import Later, group
from stackyard.cli.commands.site import show_warnings, site_option
from stackyard.cli.result import Result
from stackyard.cli.session import Session, pass_session
from stackyard.errors import InvalidInputError
from stackyard.site.discovery import find_site
from stackyard.site.listing import list_names

if TYPE_CHECKING:
    from stackyard.cli.views.paper import Paper
    from stackyard.diagnostics import Diagnostic
    from stackyard.site.load import Site

__all__ = ["spec"]


_LATER = {
    "apply": Later(
        module="stackyard.cli.commands.spec_guest",
        name="apply",
        help="Make this machine what the spec in FILE says: packages, users, keys, SSH, services.",
    ),
    "get": Later(
        module="stackyard.cli.commands.spec_guest",
        name="get",
        help="Fetch the spec of this guest from the controller, and keep the one before as FILE.prev.",
    ),
}


@group("spec", later=_LATER)
def spec() -> None:
    """Look at specs: users, packages, services and posture of a guest."""


@spec.command("list")
@site_option
def list_specs(said: str | None) -> Result:
    """Show the names of all specs."""
    names = list_names(find_site(said))["specs"]

    def show(paper: Paper) -> None:
        for name in names:
            paper.line(name)

    return Result(document={"specs": names}, show=show)


@spec.command("show")
@click.argument("name")
@click.option("--ansible", is_flag=True, help="Print it as variables of Ansible.")
@site_option
@pass_session
def show_spec(session: Session, /, name: str, ansible: bool, said: str | None) -> Result:
    """Show a spec as its guest receives it: with its posture, every user and every key.

    The packages are those of the site, of the spec and of the posture. A guest receives the same whether it
    is configured from here or fetches the spec itself.
    """
    from stackyard.site.resolver import ConfigResolver  # lazy: pydantic, only when this verb runs

    resolver = ConfigResolver(said, emit=session.emit)
    document: dict[str, Any] = resolver.resolve_spec_vars(name) if ansible else resolver.resolve_spec(name)

    def show(paper: Paper) -> None:
        import yaml  # lazy: for this text alone

        for line in yaml.safe_dump(document, sort_keys=False, allow_unicode=True).splitlines():
            paper.line(line)

    return Result(document=document, show=show)


@spec.command("validate")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@site_option
def validate(names: tuple[str, ...], said: str | None) -> Result:
    """Check some specs, or all: their own files, and the postures and keys that they name."""
    from stackyard.site.load import Site  # lazy: pydantic, only when this verb runs

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
        show=lambda paper: _show_valid(paper, wanted, found),
    )


def _require(site: Site, wanted: tuple[str, ...], known: list[str]) -> None:
    from stackyard.site.findings import meant  # lazy: pydantic comes with it
    from stackyard.site.resolver import NotInSiteError  # lazy: as above

    for name in wanted:
        if name not in known:
            raise NotInSiteError(f"There is no spec '{name}' in {site.root}.{meant(name, known)}")


def _concerns(finding: Diagnostic, names: tuple[str, ...]) -> bool:
    path = "" if finding.where is None else finding.where.path
    return any(path.endswith(f"specs/{name}.yaml") for name in names)


def _show_valid(paper: Paper, names: tuple[str, ...], warnings: list[Diagnostic]) -> None:
    show_warnings(paper, warnings)
    paper.line(f"Valid: {', '.join(names) or 'there are no specs'}.", style="green")
