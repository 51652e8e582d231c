"""`stackyard state grant`: one write that breaks a rule on purpose."""

from __future__ import annotations

import click

from stackyard.cli.command import Command
from stackyard.cli.result import Result
from stackyard.cli.states.store import StoreChoice, current_actor, open_service, store_options
from stackyard.cli.states.words import PERIOD, instant, period

__all__ = ["grant"]


@click.command("grant", cls=Command)
@click.argument("name")
@click.option(
    "--allow",
    "rules",
    type=click.Choice(["lineage", "serial", "drop"]),
    multiple=True,
    required=True,
    help="The rule: another lineage, an old serial, most resources gone. May be given several times.",
)
@click.option("--reason", required=True, metavar="TEXT", help="Why; it is audited.")
@click.option(
    "--expires", type=PERIOD, default="1h", show_default=True, metavar="AGE", help="When it ends unused."
)
@store_options
def grant(name: str, rules: tuple[str, ...], reason: str, expires: float, choice: StoreChoice) -> Result:
    """Allow one write that breaks a rule, as `tofu state push -force` needs.

    The next write that breaks these rules is taken and uses the grant up; what it replaces stays among the
    versions.

    \b
    stackyard state grant env/dev/pve1 --allow serial --reason 'push an older state by hand'
    """  # noqa: D301 - click reads the control character
    from stackyard.state import Override  # lazy: only when this verb runs

    overrides = tuple(Override(rule) for rule in rules)
    with open_service(choice) as service:
        made = service.grant(name, overrides, current_actor(), reason=reason, lasts_s=expires)
    allowed = ", ".join(made.overrides)
    return Result(
        document={
            "name": name,
            "id": made.id,
            "allow": list(made.overrides),
            "expires_at": instant(made.expires_at),
        },
        show=lambda paper: paper.line(f"One write to {name} may break: {allowed}, within {period(expires)}."),
    )
