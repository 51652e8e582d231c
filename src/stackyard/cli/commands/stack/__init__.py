"""`stackyard stack`: folders of the user's own OpenTofu code, their order, and what a change touches."""

from __future__ import annotations

from stackyard.cli.command import LazyCommand, group

__all__ = ["stack"]

_LATER = {
    "adopt": LazyCommand(
        module="stackyard.cli.commands.stack.adopt",
        name="adopt",
        help="Move the state of a stack into the store of stackyard, and make its code use it.",
    ),
    "graph": LazyCommand(
        module="stackyard.cli.commands.stack.graph",
        name="graph",
        help="Draw the order of the stacks: what is applied before what.",
    ),
    "leave": LazyCommand(
        module="stackyard.cli.commands.stack.leave",
        name="leave",
        help="Move the state of a stack out of the store, to a file beside its code.",
    ),
    "list": LazyCommand(
        module="stackyard.cli.commands.stack.list",
        name="list_stacks",
        help="List the stacks of the repository, or only those that a change touches.",
    ),
    "lock-table": LazyCommand(
        module="stackyard.cli.commands.stack.lock_table",
        name="lock_table",
        help="Move S3 stacks from a DynamoDB lock table to the lock object in the bucket, in three steps.",
    ),
    "new": LazyCommand(
        module="stackyard.cli.commands.stack.new",
        name="new",
        help="Make a new stack from a recipe or from another stack, ready to plan.",
    ),
    "run": LazyCommand(
        module="stackyard.cli.commands.stack.run",
        name="run",
        help="Run a program in the folder of each stack, in the order of their dependencies.",
    ),
    "show": LazyCommand(
        module="stackyard.cli.commands.stack.show",
        name="show",
        help="Show a stack: backend, providers, modules, variables, and every file that it reads.",
    ),
    "state": LazyCommand(
        module="stackyard.cli.commands.stack.state",
        name="state",
        help="Propose, approve and apply changes of the state of a stack.",
    ),
    "upgrade": LazyCommand(
        module="stackyard.cli.commands.stack.upgrade",
        name="upgrade",
        help="Report newer versions of providers and modules, or write them into code and lock files.",
    ),
    "why": LazyCommand(
        module="stackyard.cli.commands.stack.why",
        name="why",
        help="Show why a change selects a stack, or why not.",
    ),
}


@group("stack", later=_LATER)
def stack() -> None:
    """Manage stacks: folders of your own OpenTofu code, each with a state of its own.

    Every folder with code below `stacks/`, `tofu/stacks/` or `infrastructure/NN-name/` is a stack; no file of
    stackyard is needed. Its name is its path below that folder. A `stack.yaml` beside the code adds an order
    (`after`, `before`), tags and more; a `stackyard.yaml` at the top of the repository sets other folders
    (`roots`), `layers` and `defaults`. `stackyard site schema stack` and `stackyard site schema repository`
    print what these files may hold.

    \b
    stackyard stack new onprem/c --from proxmox  a new stack
    stackyard stack list                       all stacks
    stackyard stack list --changed             those that your branch touches
    stackyard stack why onprem/server_a        why a change selects a stack
    stackyard stack show onprem/server_a       backend, modules, files that it reads
    stackyard stack graph --format mermaid     the order, as a picture
    stackyard stack upgrade                    newer versions of providers and modules
    """  # noqa: D301 - click reads the control character
