"""M3: providers are pinned with `~>`, and the lock file of a stack fits the constraints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.base.documents.constraints import is_pinned, read_constraint
from stackyard.base.errors import Location
from stackyard.policy.model import Finding, Level, Rule
from stackyard.policy.providers import is_locked_elsewhere, list_constraints, needed_providers
from stackyard.sources.stacks.kinds import LOCK_FILE
from stackyard.sources.stacks.lock_file import is_built_in, short_source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.policy.code import RequiredProvider
    from stackyard.policy.context import CodeFolder, PolicyContext, StackFolder
    from stackyard.sources.stacks.lock_file import LockFile

__all__ = ["RULE"]

_PIN = (
    'Write a version such as `version = "~> 5.1"`; `stackyard policy fix` does so where it knows the version.'
)
_LOCK = "Run `tofu init` (or `tofu init -upgrade`) in the folder of the stack, and commit the lock file."


def _check(context: PolicyContext) -> Iterator[Finding]:
    for folder in context.folders:
        yield from _check_pins(folder)
    for one in context.stacks.values():
        yield from _check_lock(context, one)


def _check_pins(folder: CodeFolder) -> Iterator[Finding]:
    required: set[str] = set()
    for path, said in folder.code.items():
        required.update(said.required)
        for name, one in said.required.items():
            if is_built_in(short_source(one.source)):
                continue
            wrong = _find_wrong_pin(one)
            if wrong:
                where = Location(path, one.version_line)
                detail = f"The provider `{name}` (`{one.source}`) {wrong}."
                yield Finding(rule="M3", detail=detail, where=where, remedy=_PIN)
    seen: set[str] = set()
    for path, said in folder.code.items():
        for name, line in said.used.items():
            if name not in required and name not in seen and name != "terraform":
                seen.add(name)
                detail = f"The provider `{name}` is used and not named in `required_providers`."
                remedy = f"Add `{name}` with its source and a version to `required_providers`."
                yield Finding(rule="M3", detail=detail, where=Location(path, line), remedy=remedy)


def _find_wrong_pin(one: RequiredProvider) -> str:
    if one.version is None:
        return "has no version, or a computed one"
    if read_constraint(one.version) is None:
        return f"has the version `{one.version}`, which is not valid"
    return "" if is_pinned(one.version) else f"has the version `{one.version}`, without `~>`"


def _check_lock(context: PolicyContext, one: StackFolder) -> Iterator[Finding]:
    path = one.folder.path
    lock = context.lock(path)
    file = f"{path}/{LOCK_FILE}"
    needed = needed_providers(context, path)
    wanted = {source: where for source, where in needed.items() if not is_locked_elsewhere(one.stack, source)}
    if lock is None:
        if wanted:
            detail = f"The stack `{one.stack.name}` has no lock file ({LOCK_FILE})."
            yield Finding(rule="M3", detail=detail, where=Location(file), remedy=_LOCK)
        return
    if lock.bad_line:
        detail = "The lock file cannot be read whole."
        yield Finding(rule="M3", detail=detail, where=Location(file, lock.bad_line), remedy=_LOCK)
    for source, where in wanted.items():
        if source not in lock.providers:
            detail = f"The provider `{source}` is required ({where}) and not in the lock file."
            yield Finding(rule="M3", detail=detail, where=Location(file, 1), remedy=_LOCK, also=(where,))
    yield from _check_versions(context, one, lock, file)
    for source, locked in lock.providers.items():
        if source not in needed:
            detail = f"The lock file has the provider `{source}`, which nothing requires."
            remedy = "Run `tofu init`, which removes it."
            where = Location(file, locked.line)
            yield Finding(rule="M3", detail=detail, where=where, remedy=remedy, level=Level.WARNING)


def _check_versions(context: PolicyContext, one: StackFolder, lock: LockFile, file: str) -> Iterator[Finding]:
    for source, constraint, where in list_constraints(context, one.folder.path):
        locked = lock.providers.get(source)
        wanted = read_constraint(constraint)
        if locked is None or wanted is None or wanted.allows(locked.version):
            continue
        detail = (
            f"The lock file has `{source}` {locked.version}, which does not fit `{constraint}` ({where})."
        )
        place = Location(file, locked.line)
        yield Finding(rule="M3", detail=detail, where=place, remedy=_LOCK, also=(where,))


RULE = Rule(
    id="M3",
    title="Providers have a version with `~>`, and the lock file fits",
    why="Without a pin and a lock, two machines run the same code with different providers.",
    check=_check,
)
