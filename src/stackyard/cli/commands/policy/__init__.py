"""`stackyard policy`: the rules for modules and stacks."""

from __future__ import annotations

from stackyard.cli.command import LazyCommand, group

__all__ = ["policy"]

_LATER = {
    "check": LazyCommand(
        module="stackyard.cli.commands.policy.check",
        name="check",
        help="Check the modules and stacks of the repository against the rules M0 to M12.",
    ),
    "fix": LazyCommand(
        module="stackyard.cli.commands.policy.fix",
        name="fix",
        help="Correct findings of `policy check`: README tables, versions with `~>`, missing files.",
    ),
}


@group("policy", later=_LATER)
def policy() -> None:
    """Check modules and stacks against rules, and correct what can be corrected.

    A module is a folder with OpenTofu code below a `modules/` folder; `stackyard stack list` shows the
    stacks. Exceptions, with a reason and a last day, are in `exceptions` of stackyard.yaml. Your own rules in
    Rego are in the folders that `policy` of stackyard.yaml names, in packages below `stackyard.repository`.

    \b
    stackyard policy check                        all rules
    stackyard policy check --rule M4,M7           only some
    stackyard policy check --base origin/main     also new major versions (M12)
    stackyard policy fix --dry-run                show what would be written
    """  # noqa: D301 - click reads the control character
