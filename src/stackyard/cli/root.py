"""The root of the command line: every noun and verb, none of them loaded yet."""

from __future__ import annotations

import click

import stackyard
from stackyard.cli.command import Answer, Group, Later
from stackyard.cli.result import Result

__all__ = ["root"]

_COMMANDS = {
    "apply": Later(
        module="stackyard.cli.commands.apply",
        name="apply",
        help="Plan TARGET, ask the guard, apply exactly that plan, and prove that the guests are up.",
    ),
    "completion": Later(
        module="stackyard.cli.commands.completion",
        name="completion",
        help="Print the completion script of a shell.",
    ),
    "create": Later(
        module="stackyard.cli.commands.create",
        name="create",
        help="Make everything that a manifest says, configure it, and go on inside of its Proxmox nodes.",
    ),
    "deployment": Later(
        module="stackyard.cli.commands.deployment",
        name="deployment",
        help="Look after the deployment object: one versioned desired state with one writer at a time.",
    ),
    "destroy": Later(
        module="stackyard.cli.commands.destroy",
        name="destroy",
        help="Destroy everything that TARGET has, or that a manifest (-M) has made.",
    ),
    "drift": Later(
        module="stackyard.cli.commands.drift",
        name="drift",
        help="Show what of TARGET is no longer as its input says, and which guests nobody manages.",
    ),
    "import": Later(
        module="stackyard.cli.commands.import_guests",
        name="import_guests",
        help="Take guests over that are already there: write them into TARGET (`env:home`) and its state.",
    ),
    "init": Later(
        module="stackyard.cli.commands.init",
        name="init",
        help="Make a commented site in DIR that works: a node, images, sizes, an env, encrypted secrets.",
    ),
    "inner-run": Later(
        module="stackyard.cli.commands.inner_run",
        name="inner_run",
        help="Run what an outer operator orders on standard input, and answer in records.",
        is_hidden=True,
    ),
    "inventory": Later(
        module="stackyard.cli.commands.inventory",
        name="inventory",
        help="Render, publish and read the inventory of a target: what runs where, for Ansible.",
    ),
    "explain": Later(
        module="stackyard.cli.commands.explain",
        name="explain",
        help="Show each resolved value of ENV (`dev`, or `env:dev`), with its file and line.",
    ),
    "lab": Later(
        module="stackyard.cli.commands.lab",
        name="lab",
        help="Run a Proxmox VE API without hardware, to try and test things on.",
    ),
    "manifest": Later(
        module="stackyard.cli.commands.manifest",
        name="manifest",
        help="Look at manifests: guests, and guests inside guests, that come and go together.",
    ),
    "output": Later(
        module="stackyard.cli.commands.output",
        name="output",
        help="Show the guests of TARGET as its state has them: ids, names, nodes, addresses.",
    ),
    "plan": Later(
        module="stackyard.cli.commands.plan",
        name="plan",
        help="Show what would change for TARGET (`env:dev`, or `dev`), and what the guard says to it.",
    ),
    "preflight": Later(
        module="stackyard.cli.commands.preflight",
        name="preflight",
        help="Look at a host before anything is asked of it: everything that would stop a run, at once.",
    ),
    "scenario": Later(
        module="stackyard.cli.commands.scenario",
        name="scenario",
        help="Run named pieces of work on machines: install Proxmox VE, make users, build images.",
    ),
    "serve": Later(
        module="stackyard.cli.commands.serve",
        name="serve",
        help="Serve the specs of the site, git repositories and states to guests, over HTTPS.",
    ),
    "site": Later(
        module="stackyard.cli.commands.site",
        name="site",
        help="Look at the site: the tree of YAML files that says what there should be.",
    ),
    "spec": Later(
        module="stackyard.cli.commands.spec",
        name="spec",
        help="Look at specs: users, packages, services and posture of a guest.",
    ),
    "secrets": Later(
        module="stackyard.cli.commands.secrets",
        name="secrets",
        help="Read and write secrets files of SOPS (with age keys) and of Ansible Vault.",
    ),
    "state": Later(
        module="stackyard.cli.commands.state",
        name="state",
        help="Look after the states of OpenTofu: versions, locks, rollback, audit.",
    ),
    "test": Later(
        module="stackyard.cli.commands.test",
        name="test",
        help="Make what a manifest says, verify every node at every depth, and remove what was made.",
    ),
    "tools": Later(
        module="stackyard.cli.commands.tools",
        name="tools",
        help="Show and install the programs that stackyard drives.",
    ),
}


def _show_version(ctx: click.Context, param: click.Parameter, is_wanted: bool) -> None:
    del param
    if is_wanted and not ctx.resilient_parsing:
        version = stackyard.__version__
        document = {"name": "stackyard", "version": version}
        raise Answer(Result(document=document, show=lambda paper: paper.line(f"stackyard {version}")))


@click.group(cls=Group, later=_COMMANDS)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_show_version,
    help="Show the version.",
)
def root() -> None:
    """Run Proxmox VE infrastructure as code through OpenTofu.

    The spelling of old is understood: --scenario NAME, --list-scenarios, --list-phases, --preflight.

    Exit status: 0 done, 1 failed or refused, 2 changes (only with --detailed-exitcode), 64 wrong usage,
    65 invalid input, 69 a service cannot be reached, 75 a lock was not obtained in time, 130 interrupted.
    """
