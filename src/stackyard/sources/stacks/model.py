"""A stack, and what `stack.yaml` and `stackyard.yaml` say of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["Dependency", "Stack", "StackSettings"]

_NONE: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependency:
    """A stack that comes before another one, and which of its outputs the other one takes.

    Attributes:
        stack: The name of the stack that comes first.
        outputs: By the name of an input variable, the output that it gets its value from.
    """

    stack: str
    outputs: Mapping[str, str] = field(default_factory=lambda: _NONE)


@dataclass(frozen=True, slots=True, kw_only=True)
class StackSettings:
    """What is said of a stack beside its code.

    Attributes:
        after: Stacks that are applied before this one.
        before: Names of stacks that are applied after this one.
        watch: Globs of more files that a change of selects this stack, from the top of the repository.
        var_files: Files with values of variables; those found by convention when absent.
        secrets: Encrypted files with values of variables; those found by convention when absent.
        backend_config: Files with settings of the backend, as for `init -backend-config`.
        domains: A folder of `*.json` whose top-level keys are values of variables.
        tags: Words to select stacks by.
        protected: Whether nothing of it may be destroyed.
        critical: Whether new major versions of providers and modules are tried in another stack first.
        engine: The engine that runs it, `tofu` or `terraform`; the one that is found when absent.
        provider: The Proxmox provider, `builtin` or `bpg`; the built-in one when absent.
        policy: Folders with Rego rules for its plans.
    """

    after: tuple[Dependency, ...] = ()
    before: tuple[str, ...] = ()
    watch: tuple[str, ...] = ()
    var_files: tuple[Path, ...] | None = None
    secrets: tuple[Path, ...] | None = None
    backend_config: tuple[Path, ...] = ()
    domains: Path | None = None
    tags: tuple[str, ...] = ()
    protected: bool = False
    critical: bool = True
    engine: str | None = None
    provider: str | None = None
    policy: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """A folder with a root module.

    Attributes:
        name: Its path below the folder that holds the stacks: `onprem/proxmox_server_A_gpu`.
        folder: The folder, absolute.
        path: The folder from the top of the repository, with slashes.
        layer: The layer that it belongs to, empty where there are no layers.
        settings: What is said of it beside its code.
    """

    name: str
    folder: Path
    path: str
    layer: str = ""
    settings: StackSettings = field(default_factory=StackSettings)
