"""`stackyard state grant`: one write that breaks a rule on purpose."""

from __future__ import annotations

import click

from stackyard.cli.command import Command
from stackyard.cli.commands.state.store import StoreChoice, current_actor, open_service, store_options
from stackyard.cli.commands.state.words import PERIOD, instant, period
from stackyard.cli.completions import complete_states
from stackyard.cli.result import Result

__all__ = ["grant"]


@click.command("grant", cls=Command)
@click.argument("name", shell_complete=complete_states)
@click.option(
    "--allow",
    "rules",
    type=click.Choice(["lineage", "serial", "drop"]),
    multiple=True,
    required=True,
    help="The rule: a different lineage, an older serial, loss of most resources. Repeatable.",
)
@click.option("--reason", required=True, metavar="TEXT", help="The reason, for the audit log.")
@click.option(
    "--expires",
    type=PERIOD,
    default="1h",
    show_default=True,
    metavar="AGE",
    help="When an unused grant expires.",
)
@store_options
def grant(name: str, rules: tuple[str, ...], reason: str, expires: float, choice: StoreChoice) -> Result:
    """Allow one write that breaks a rule, as needed for `tofu state push -force`.

    The next write that breaks these rules is accepted and uses up the grant. The version that it replaces
    stays.

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
        show=lambda writer: writer.line(
            f"One write to {name} may break: {allowed}, within {period(expires)}."
        ),
    )
