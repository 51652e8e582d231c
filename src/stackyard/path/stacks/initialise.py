"""Preparing the engine for a stack: once for each set of providers at a time, through a cache that all share.

Stacks with the same providers are prepared one after the other until the cache has them, then side by side.
Engines that fill the cache at the same time, or run a program that another one is writing, break each other.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from dataclasses import replace
from typing import TYPE_CHECKING

import stackyard
from stackyard.base import directories, events
from stackyard.base.errors import InvalidInputError, Location
from stackyard.base.locks import exclusive
from stackyard.engine import tofu
from stackyard.engine.failures import TofuError
from stackyard.path.stacks.environment import plugin_cache

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from stackyard.engine.workdir import Workdir
    from stackyard.path.settings import RunSettings
    from stackyard.path.stacks.source import ResolvedStack

__all__ = ["StateLeftBehindError", "initialise"]

_LOCK_FILE = ".terraform.lock.hcl"
_STAMP = "initialised"
_BACKEND_RECORD = "terraform.tfstate"
# What both engines say of a state that they would move and may not ask about.
_MIGRATION = "approval for state migration"
_BUILT_IN = "terraform.io/builtin/"
_READY = ".ready"
# The programs of the providers, by source, version and platform.
_PROVIDERS = "providers/*/*/*/*/*"


class StateLeftBehindError(InvalidInputError):
    """The backend in the code of a stack was changed by hand, and its state is still in a file beside it."""

    code = "E-STACK-STATE-LEFT"
    summary = "The state of the stack is still where it was before"
    default_remedy = (
        "Put the former backend back, and let `stackyard stack adopt` move the state; or remove the file "
        "terraform.tfstate, if it is of no use."
    )


async def initialise(
    resolved: ResolvedStack, workdir: Workdir, settings: RunSettings, emit: events.Emit
) -> None:
    """Let the engine prepare the folder of a stack, unless it did so for the same code before.

    Raises:
        StateLeftBehindError: The state is still in a file, and the code names another backend.
        TofuError: The engine cannot prepare it.
        FileError: The work folder cannot be written.
    """
    stamp = workdir.data_folder / _STAMP
    wanted = _make_stamp(resolved, workdir, settings)
    if _read(stamp) == wanted:
        return
    directories.ensure_private(workdir.data_folder)
    # Whatever fails from here on, the folder is no longer prepared for the code before: that may come back.
    stamp.unlink(missing_ok=True)
    # Which backend there was before: an engine that finds one, and none in the code, asks to move the state.
    (workdir.data_folder / _BACKEND_RECORD).unlink(missing_ok=True)
    cache = plugin_cache(workdir.environment)
    workdir = _with_cache(workdir, cache)
    options = tofu.InitOptions(backend_config=resolved.stack.settings.backend_config, reconfigure=True)
    step = f"init {resolved.target}"
    with events.step(emit, step, f"Preparing {resolved.target}"):
        async with _provider_turn(cache, _provider_set(resolved, workdir), step, emit):
            await _init(resolved, workdir, options, emit)
    # The engine may have written its lock file. What is lost of this in a crash is only prepared once more.
    stamp.write_bytes(_make_stamp(resolved, workdir, settings))


async def _init(
    resolved: ResolvedStack, workdir: Workdir, options: tofu.InitOptions, emit: events.Emit
) -> None:
    try:
        await tofu.init(workdir, options, emit=emit)
    except TofuError as err:
        if _MIGRATION in err.detail or any(_MIGRATION in one.summary for one in err.findings):
            folder = resolved.stack.folder
            raise StateLeftBehindError(
                f"{resolved.target} has a state in {folder}, and its code names another backend: "
                f"{resolved.backend.label}.",
                where=Location(str(folder)),
            ) from err
        raise


def _with_cache(workdir: Workdir, cache: Path) -> Workdir:
    directories.ensure_private(cache)
    return replace(workdir, environment={**workdir.environment, "TF_PLUGIN_CACHE_DIR": str(cache)})


def _make_stamp(resolved: ResolvedStack, workdir: Workdir, settings: RunSettings) -> bytes:
    """Return what the folder has to be prepared for."""
    digest = hashlib.sha256()
    lines = (stackyard.__version__, str(workdir.engine), settings.provider, resolved.backend.kind)
    digest.update("\n".join(map(str, lines)).encode())
    for path in (*resolved.code_files(), *resolved.stack.settings.backend_config):
        digest.update(f"\0{path}\0".encode() + (_read(path) or b"-"))
    digest.update(_read(resolved.stack.folder / _LOCK_FILE) or b"-")
    # They are links into the cache, which anyone may empty.
    for path in sorted(workdir.data_folder.glob(_PROVIDERS)):
        digest.update(f"\0{path.name}\0{path.exists()}".encode())
    return digest.hexdigest().encode()


def _provider_set(resolved: ResolvedStack, workdir: Workdir) -> str:
    """Return which providers are downloaded, as a name; empty where there are none."""
    served = "bpg/proxmox" if workdir.reattach is not None else None
    sources = sorted(
        source
        for source in set(resolved.facts.providers.values())
        if not source.startswith(_BUILT_IN) and not (served and source.endswith(served))
    )
    if not sources:
        return ""
    lock = _read(resolved.stack.folder / _LOCK_FILE) or b""
    return hashlib.sha256("\n".join(sources).encode() + b"\0" + lock).hexdigest()[:24]


@contextlib.asynccontextmanager
async def _provider_turn(cache: Path, name: str, step: str, emit: events.Emit) -> AsyncIterator[None]:
    """Hold the turn of a set of providers, unless the cache has it."""
    ready = cache / f"{name}{_READY}"
    if not name or ready.exists():
        yield
        return

    def say(holder: str) -> None:
        emit(events.StepWaiting(step=step, waiting_for=f"the providers, which {holder} downloads"))

    async with exclusive(cache / f"{name}.lock", f"process {os.getpid()}", say):
        yield
        ready.touch()


def _read(path: Path) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None
