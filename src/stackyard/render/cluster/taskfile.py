"""The tasks of a cluster for go-task, which call stackyard."""

from __future__ import annotations

__all__ = ["render_taskfiles"]

_ROOT = """\
---
# Written by `stackyard cluster configure`. Change it as you like: stackyard then leaves it alone.
version: "3"

includes:
  infra: .taskfiles/infrastructure

tasks:
  default: task --list

  configure:
    desc: Write the files of the cluster from cluster.yaml and nodes.yaml
    cmd: stackyard cluster configure {{.CLI_ARGS}}
"""
_VERBS = {
    "init": "Prepare the backend and the provider",
    "plan": "Show what would change",
    "apply": "Apply the saved plan",
    "apply-auto": "Plan and apply without a question",
    "destroy": "Destroy all VMs and images",
    "output": "Show the outputs",
    "state-list": "List the resources of the state",
    "force-unlock": "Release the lock LOCK_ID",
    "validate": "Check the configuration",
    "fmt": "Format the configuration",
    "fmt-check": "Check the format of the configuration",
    "secrets-edit": "Edit the encrypted secrets",
    "verify-nodes": "Check that every node is in maintenance mode",
}
_ARGUMENTS = "{{.CLI_ARGS}}"


def render_taskfiles() -> dict[str, bytes]:
    """Return the Taskfiles by their path from the folder of the cluster."""
    lines = ["---", "# Written by `stackyard cluster configure`.", 'version: "3"', "", "tasks:"]
    for number, (verb, description) in enumerate(_VERBS.items()):
        lines += [""] * bool(number) + [f"  {verb}:", f"    desc: {description}"]
        words = f"stackyard infra {verb}"
        if verb == "force-unlock":
            lines += ["    requires:", "      vars: [LOCK_ID]"]
            words += " {{shellQuote .LOCK_ID}}"
        lines.append(f"    cmd: {words} {_ARGUMENTS}")
    infra = "\n".join([*lines, ""])
    return {"Taskfile.yaml": _ROOT.encode(), ".taskfiles/infrastructure/Taskfile.yaml": infra.encode()}
