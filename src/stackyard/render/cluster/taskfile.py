"""The tasks of a cluster for go-task, which call stackyard."""

from __future__ import annotations

__all__ = ["render_taskfiles"]

_ROOT = """\
---
# Written by `stackyard cluster configure`. Change it as you like: stackyard then leaves it alone.
version: "3"

includes:
  bootstrap: .taskfiles/bootstrap
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
# Both run the same steps: each looks first, and does only what is missing.
_BOOTSTRAP = {
    "talos": "Create VMs, install Talos, start Kubernetes, and apply what bootstrap.yaml names",
    "apps": "Apply what is missing of the network plugin, secrets and Flux",
}
_ARGUMENTS = "{{.CLI_ARGS}}"


def render_taskfiles() -> dict[str, bytes]:
    """Return the Taskfiles by their path from the folder of the cluster."""
    infra = []
    for verb, description in _VERBS.items():
        words, needs = f"stackyard infra {verb}", tuple[str, ...]()
        if verb == "force-unlock":
            words, needs = f"{words} {{{{shellQuote .LOCK_ID}}}}", ("LOCK_ID",)
        infra.append(_write_task(verb, description, words, needs))
    bootstrap = [_write_task(name, text, "stackyard cluster up") for name, text in _BOOTSTRAP.items()]
    return {
        "Taskfile.yaml": _ROOT.encode(),
        ".taskfiles/bootstrap/Taskfile.yaml": _write_file(bootstrap),
        ".taskfiles/infrastructure/Taskfile.yaml": _write_file(infra),
    }


def _write_file(tasks: list[str]) -> bytes:
    head = '---\n# Written by `stackyard cluster configure`.\nversion: "3"\n\ntasks:\n'
    return (head + "\n".join(tasks)).encode()


def _write_task(name: str, description: str, words: str, needs: tuple[str, ...] = ()) -> str:
    required = f"    requires:\n      vars: [{', '.join(needs)}]\n" if needs else ""
    return f"  {name}:\n    desc: {description}\n{required}    cmd: {words} {_ARGUMENTS}\n"
