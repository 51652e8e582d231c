"""The root of the command line: every noun and verb, none of them loaded yet."""

from __future__ import annotations

import click

import stackyard
from stackyard.cli.command import EarlyResult, Group, LazyCommand
from stackyard.cli.result import Result

__all__ = ["root"]

_COMMANDS = {
    "apply": LazyCommand(
        module="stackyard.cli.commands.apply",
        name="apply",
        help="Plan TARGET, run the guard, apply exactly that plan, and verify that the guests are up.",
    ),
    "cluster": LazyCommand(
        module="stackyard.cli.commands.cluster",
        name="cluster",
        help="Describe Talos clusters, generate their infrastructure, and bring them up.",
    ),
    "completion": LazyCommand(
        module="stackyard.cli.commands.completion",
        name="completion",
        help="Print the completion script for a shell.",
    ),
    "connect": LazyCommand(
        module="stackyard.cli.commands.connect",
        name="connect",
        help="Connect to Proxmox VE: create an API token for stackyard, and add the nodes to the site.",
    ),
    "create": LazyCommand(
        module="stackyard.cli.commands.create",
        name="create",
        help="Create and configure the guests of a manifest: the same as `stackyard apply manifest:NAME`.",
    ),
    "deployment": LazyCommand(
        module="stackyard.cli.commands.deployment",
        name="deployment",
        help="Manage the deployment object: one versioned desired state with one writer at a time.",
    ),
    "destroy": LazyCommand(
        module="stackyard.cli.commands.destroy",
        name="destroy",
        help="Destroy everything in TARGET, a manifest included.",
    ),
    "doctor": LazyCommand(
        module="stackyard.cli.commands.doctor",
        name="doctor",
        help="Show what is installed, reachable and outdated, with what to do about each problem.",
    ),
    "drift": LazyCommand(
        module="stackyard.cli.commands.drift",
        name="drift",
        help="Show where the cluster differs from the input of TARGET, and list unmanaged guests.",
    ),
    "gitops": LazyCommand(
        module="stackyard.cli.commands.gitops",
        name="gitops",
        help="Plan pull requests, and apply what was reviewed.",
    ),
    "import": LazyCommand(
        module="stackyard.cli.commands.import_guests",
        name="import_guests",
        help="Import existing guests: write them into TARGET (`env:home`) and its state.",
    ),
    "infra": LazyCommand(
        module="stackyard.cli.commands.infra",
        name="infra",
        help="Work on the infrastructure of a Talos cluster, which `stackyard cluster configure` writes.",
    ),
    "init": LazyCommand(
        module="stackyard.cli.commands.init",
        name="init",
        help="Create a working, commented site in DIR: a node, images, presets, an env, encrypted secrets.",
    ),
    "inner-run": LazyCommand(
        module="stackyard.cli.commands.inner_run",
        name="inner_run",
        help="Run what an outer operator requests on standard input, and answer in records.",
        is_hidden=True,
    ),
    "inventory": LazyCommand(
        module="stackyard.cli.commands.inventory",
        name="inventory",
        help="Render, publish and read the inventory of a target: its guests and addresses, for Ansible.",
    ),
    "explain": LazyCommand(
        module="stackyard.cli.commands.explain",
        name="explain",
        help="Show each resolved value of a TARGET, with its file and line.",
    ),
    "explain-error": LazyCommand(
        module="stackyard.cli.commands.explain_error",
        name="explain_error",
        help="Explain an error code: what it means, why it happens, and what to do.",
    ),
    "lab": LazyCommand(
        module="stackyard.cli.commands.lab",
        name="lab",
        help="Run a simulator of the Proxmox VE API, for tests without hardware.",
    ),
    "manifest": LazyCommand(
        module="stackyard.cli.commands.manifest",
        name="manifest",
        help="Inspect manifests: guests, and guests inside guests, that are created and destroyed together.",
    ),
    "output": LazyCommand(
        module="stackyard.cli.commands.output",
        name="output",
        help="Show the guests of TARGET from its state: IDs, names, nodes, addresses.",
    ),
    "plan": LazyCommand(
        module="stackyard.cli.commands.plan",
        name="plan",
        help="Show what would change for TARGET (`env:dev`, or `dev`), and what the guard refuses.",
    ),
    "plans": LazyCommand(
        module="stackyard.cli.commands.plans",
        name="plans",
        help="List, show and remove the plans that `stackyard plan --out store:` saved in the store.",
    ),
    "policy": LazyCommand(
        module="stackyard.cli.commands.policy",
        name="policy",
        help="Check modules and stacks against rules, and correct what can be corrected.",
    ),
    "preflight": LazyCommand(
        module="stackyard.cli.commands.preflight",
        name="preflight",
        help="Check a host before a run, and report all problems that would stop the run.",
    ),
    "runs": LazyCommand(
        module="stackyard.cli.commands.runs",
        name="runs",
        help="Show, follow and cancel the runs of this site, on any machine.",
    ),
    "scenario": LazyCommand(
        module="stackyard.cli.commands.scenario",
        name="scenario",
        help="Run named pieces of work on machines: install Proxmox VE, create users, build images.",
    ),
    "serve": LazyCommand(
        module="stackyard.cli.commands.serve",
        name="serve",
        help="Serve the specs of the site, git repositories and states to guests, over HTTPS.",
    ),
    "site": LazyCommand(
        module="stackyard.cli.commands.site",
        name="site",
        help="Inspect the site: the folder of YAML files that describes what should exist.",
    ),
    "spec": LazyCommand(
        module="stackyard.cli.commands.spec",
        name="spec",
        help="Inspect and apply specs: users, packages, services and posture of a guest.",
    ),
    "secrets": LazyCommand(
        module="stackyard.cli.commands.secrets",
        name="secrets",
        help="Read and write secrets files in the formats of SOPS (with age keys) and Ansible Vault.",
    ),
    "stack": LazyCommand(
        module="stackyard.cli.commands.stack",
        name="stack",
        help="Manage stacks: folders of your own OpenTofu code, each with a state of its own.",
    ),
    "state": LazyCommand(
        module="stackyard.cli.commands.state",
        name="state",
        help="Manage OpenTofu states: versions, locks, rollback, audit.",
    ),
    "store": LazyCommand(
        module="stackyard.cli.commands.store",
        name="store",
        help="Manage the store of the site: states, run records, saved plans, inventories and private keys.",
    ),
    "test": LazyCommand(
        module="stackyard.cli.commands.test",
        name="test",
        help="Create the guests of a manifest, verify every node at every depth, and remove them again.",
    ),
    "tools": LazyCommand(
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
        raise EarlyResult(Result(document=document, show=lambda writer: writer.line(f"stackyard {version}")))


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

    Legacy options are accepted: --scenario NAME, --list-scenarios, --list-phases, --preflight.

    Exit status: 0 success, 1 failed or refused, 2 changes (only with --detailed-exitcode), 3 a plan that the
    guard would refuse, 64 usage error, 65 invalid input, 69 a service is unreachable, 75 timeout while
    waiting for a lock, 130 interrupted.
    """
