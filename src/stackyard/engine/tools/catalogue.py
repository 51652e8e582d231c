"""The external programs that stackyard can use: how each says its version, and what needs it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stackyard.base import process
from stackyard.base.errors import StackyardError
from stackyard.engine.version import OLDEST, Flavour, Version, probe_version

__all__ = [
    "CATALOGUE",
    "ETCD",
    "GITEA",
    "KUBE_APISERVER",
    "OPA",
    "SOPS",
    "TALOSCTL",
    "TASK",
    "TERRAFORM",
    "TOFU",
    "Ask",
    "Tool",
    "ToolBrokenError",
    "VersionOutput",
]

# A program that only says its version has nothing to save.
_GRACE_S = 1.0
_QUOTED_CHARACTERS = 200
# A program that has more to say of its version is not what it seems.
_ANSWER_LIMIT_BYTES = 2**20


class ToolBrokenError(StackyardError):
    """An external program was asked for its version and answered with something else."""

    code = "E-TOOL-BROKEN"
    summary = "A program does not say its version"
    default_remedy = "Install the program again, or take it off PATH."


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionOutput:
    """What a program said of itself.

    Attributes:
        product: The name of the tool that it really is, which need not be the name of its file.
        version: Its version as it wrote it.
    """

    product: str
    version: str


Ask = Callable[[Path, float], Coroutine[Any, Any, VersionOutput]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """An external program.

    Attributes:
        name: What we call it.
        programs: The names under which it may be on PATH, the best first.
        ask: Asks a program for its version, for at most some seconds; raises when it does not answer.
        needed_for: What needs it, in words for the user.
        minimum: The oldest version that works, where that is known.
        is_managed: Whether `tools install` installs it.
    """

    name: str
    programs: tuple[str, ...]
    ask: Ask
    needed_for: str
    minimum: Version | None = None
    is_managed: bool = False


async def _ask_engine(path: Path, timeout_s: float) -> VersionOutput:
    flavour, version = await probe_version(path, timeout_s)
    return VersionOutput(product=flavour.value, version=str(version))


def _ask_version(product: str, arguments: str, pattern: str, env: Mapping[str, str] | None = None) -> Ask:
    """Return how to ask a program that answers in plain text; the version is the pattern's one group."""
    compiled = re.compile(pattern, re.ASCII)

    async def ask(path: Path, timeout_s: float) -> VersionOutput:
        command = process.Command(
            argv=(str(path), *arguments.split()),
            env=process.environment(env),
            cwd=Path("/"),
            timeout_s=timeout_s,
            grace_s=_GRACE_S,
            output_limit_bytes=_ANSWER_LIMIT_BYTES,
        )
        completed = await process.run(command)
        # OpenSSH answers on its error output.
        answer = f"{completed.stdout}\n{completed.stderr}".strip()
        match = compiled.search(answer)
        if match is None:
            said = answer[:_QUOTED_CHARACTERS] or "nothing"
            raise ToolBrokenError(f"`{command.shown}` did not answer with a version, but with: {said}")
        return VersionOutput(product=product, version=match[1])

    return ask


TOFU = Tool(
    name="tofu",
    programs=("tofu",),
    ask=_ask_engine,
    minimum=OLDEST[Flavour.TOFU],
    needed_for="every plan and apply: OpenTofu is the engine",
    is_managed=True,
)

TERRAFORM = Tool(
    name="terraform",
    programs=("terraform",),
    ask=_ask_engine,
    minimum=OLDEST[Flavour.TERRAFORM],
    needed_for="every plan and apply where there is no OpenTofu",
)

OPA = Tool(
    name="opa",
    programs=("opa",),
    ask=_ask_version("opa", "version", r"(?m)^Version: (\d+\.\d+\.\d+\S*)"),
    # The first that reads rules as they are written today.
    minimum=Version(1, 0, 0),
    needed_for="plans that rules in Rego judge",
    is_managed=True,
)

SOPS = Tool(
    name="sops",
    programs=("sops",),
    # Without the variable it asks its project's site for the latest version first.
    ask=_ask_version(
        "sops", "--version", r"sops v?(\d+\.\d+\.\d+\S*)", {"SOPS_DISABLE_VERSION_CHECK": "true"}
    ),
    needed_for="secret files with keys other than age",
    is_managed=True,
)

TALOSCTL = Tool(
    name="talosctl",
    programs=("talosctl",),
    ask=_ask_version("talosctl", "version --client --short", r"(?m)^Talos v?(\d+\.\d+\.\d+\S*)"),
    # The oldest that knows the configuration of the Talos versions in recipes.
    minimum=Version(1, 12, 0),
    needed_for="upgrades and resets of the nodes of Talos clusters",
    is_managed=True,
)

TASK = Tool(
    name="task",
    # Some distributions call it go-task: to them, `task` is a list of things to do.
    programs=("go-task", "task"),
    # `3.54.0`, and `Task version: v3.39.2 (h1:...)` in older ones.
    ask=_ask_version("task", "--version", r"(?m)^(?:Task version: )?v?(\d+\.\d+\.\d+\S*)"),
    minimum=Version(3, 0, 0),
    needed_for="repositories with a Taskfile",
    is_managed=True,
)

KUBE_APISERVER = Tool(
    name="kube-apiserver",
    programs=("kube-apiserver",),
    ask=_ask_version("kube-apiserver", "--version", r"(?m)^Kubernetes v(\d+\.\d+\.\d+\S*)"),
    needed_for="clusters of the lab with a real Kubernetes API",
    is_managed=True,
)

ETCD = Tool(
    name="etcd",
    programs=("etcd",),
    ask=_ask_version("etcd", "--version", r"(?m)^etcd Version: (\d+\.\d+\.\d+\S*)"),
    needed_for="clusters of the lab with a real Kubernetes API",
    is_managed=True,
)

GITEA = Tool(
    name="gitea",
    programs=("gitea",),
    # `gitea version 1.26.0 built with ...`, with a capital in older ones.
    ask=_ask_version("gitea", "--version", r"(?mi)^gitea version v?(\d+\.\d+\.\d+\S*)"),
    needed_for="trying GitOps with a forge on this machine",
    is_managed=True,
)

CATALOGUE: tuple[Tool, ...] = (
    TOFU,
    TERRAFORM,
    Tool(
        name="git",
        programs=("git",),
        ask=_ask_version("git", "--version", r"git version (\d+\.\d+\S*)"),
        # The oldest in a distribution that still gets security fixes when this was written.
        minimum=Version(2, 30, 0),
        needed_for="stacks, pull requests and everything else that reads a repository",
    ),
    Tool(
        name="ssh",
        programs=("ssh",),
        ask=_ask_version("ssh", "-V", r"OpenSSH_(\d+\.\d+\w*)"),
        needed_for="opening a shell on a guest, and Ansible's connections",
    ),
    Tool(
        name="ansible-playbook",
        programs=("ansible-playbook",),
        # `ansible-playbook [core 2.15.3]`; the word core is not there before 2.11.
        ask=_ask_version("ansible-playbook", "--version", r"ansible-playbook (?:\[core )?(\d+\.\d+\.\d+\w*)"),
        needed_for="scenarios that configure hosts and guests",
    ),
    SOPS,
    Tool(
        name="packer",
        programs=("packer",),
        # `Packer v1.11.2`, and the bare number in older ones.
        ask=_ask_version(
            "packer", "--version", r"(?m)^(?:Packer v)?(\d+\.\d+\.\d+\S*)", {"CHECKPOINT_DISABLE": "1"}
        ),
        needed_for="scenarios that build images",
    ),
    Tool(
        name="qemu",
        programs=(f"qemu-system-{os.uname().machine}", "qemu-system-x86_64", "qemu-kvm", "kvm"),
        ask=_ask_version("qemu", "--version", r"QEMU emulator version (\d+\.\d+(?:\.\d+)?)"),
        needed_for="building images with Packer on this machine",
    ),
    OPA,
    TALOSCTL,
    TASK,
    KUBE_APISERVER,
    ETCD,
    GITEA,
)
