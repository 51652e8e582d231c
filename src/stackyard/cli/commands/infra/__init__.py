"""`stackyard infra`: the generated infrastructure of a Talos cluster, with the verbs of its Taskfile."""

from __future__ import annotations

from stackyard.cli.command import LazyCommand, group

__all__ = ["infra"]

_ENGINE = "stackyard.cli.commands.infra.engine"
_PATH = "stackyard.cli.commands.infra.path"

_LATER = {
    "init": LazyCommand(
        module=_ENGINE,
        name="init",
        help="Prepare `infrastructure/tofu` for OpenTofu itself: connect to the backend, install providers.",
    ),
    "plan": LazyCommand(
        module=_PATH,
        name="plan",
        help="Show what would change and what the guard refuses, and save the plan, encrypted, as `tfplan`.",
    ),
    "apply": LazyCommand(
        module=_PATH,
        name="apply",
        help="Apply the plan that `stackyard infra plan` saved as `tfplan`, and nothing else.",
    ),
    "apply-auto": LazyCommand(
        module=_PATH,
        name="apply_auto",
        help="Plan and apply at once, without a question; what the guard refuses still needs its option.",
    ),
    "destroy": LazyCommand(
        module=_PATH,
        name="destroy",
        help="Destroy everything that the infrastructure of a cluster has: VMs, their disks, and images.",
    ),
    "output": LazyCommand(
        module=_ENGINE,
        name="output",
        help="Show the outputs of a cluster: VM IDs, addresses, images, what to do next.",
    ),
    "state-list": LazyCommand(
        module=_ENGINE, name="state_list", help="List the resources that the state of a cluster has."
    ),
    "force-unlock": LazyCommand(
        module=_ENGINE,
        name="force_unlock",
        help="Remove a lock that a dead run left on the state of a cluster; the ID is in the error message.",
    ),
    "validate": LazyCommand(
        module=_ENGINE,
        name="validate",
        help="Check that the code of a cluster is valid for OpenTofu and the provider.",
    ),
    "fmt": LazyCommand(
        module=_ENGINE,
        name="fmt",
        help="Format the code of a cluster; what `cluster configure` writes is formatted already.",
    ),
    "fmt-check": LazyCommand(
        module=_ENGINE,
        name="fmt_check",
        help="Check that the code of a cluster is formatted; list the files that are not.",
    ),
    "secrets-edit": LazyCommand(
        module="stackyard.cli.commands.infra.secrets_edit",
        name="secrets_edit",
        help="Edit `infrastructure/secrets.sops.yaml` with your editor (SOPS_EDITOR, VISUAL or EDITOR).",
    ),
    "rotate-credentials": LazyCommand(
        module="stackyard.cli.commands.infra.rotate",
        name="rotate_credentials",
        help="Give a cluster a new token of the state service, and end the old one.",
    ),
    "verify-nodes": LazyCommand(
        module="stackyard.cli.commands.infra.verify_nodes",
        name="verify_nodes",
        help="Check that every node answers in maintenance mode, and that its install disk is there.",
    ),
}


@group("infra", later=_LATER)
def infra() -> None:
    """Work on the infrastructure of a Talos cluster, which `stackyard cluster configure` writes.

    The verbs are those of `task infra:VERB`. Each works on the same code and the same state as
    `stackyard plan cluster:NAME` and as OpenTofu itself in `infrastructure/tofu`. The credentials in
    `infrastructure/secrets.sops.yaml` are decrypted once, in memory, and passed to OpenTofu in its
    environment; a file that cannot be decrypted is an error.

    \b
    stackyard infra plan
    stackyard infra plan -detailed-exitcode
    stackyard infra apply
    stackyard infra output -json

    In a repository with several clusters, name one with --cluster.
    """  # noqa: D301 - click reads the control character
