"""M12: a new major version is tried in a stack that is not critical before the others take it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stackyard.base.documents.constraints import Operator, read_constraint
from stackyard.base.documents.versions import major_line
from stackyard.base.errors import Location
from stackyard.policy.model import Finding, Rule, Skipped
from stackyard.policy.sources import SourceKind, classify, registry_address
from stackyard.sources.stacks.kinds import LOCK_FILE
from stackyard.sources.stacks.lock_file import is_built_in, short_source

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.policy.base_code import BaseCode
    from stackyard.policy.code import CodeFacts
    from stackyard.policy.context import PolicyContext
    from stackyard.sources.stacks.lock_file import LockFile

__all__ = ["RULE"]

# What only keeps versions out says nothing about which one is used.
_BOUNDS = (Operator.LESS, Operator.AT_MOST, Operator.NOT_EQUAL)


class _Used(NamedTuple):
    """The newest major version that a stack uses of something, and where that is said."""

    major: tuple[int, ...]
    text: str
    where: Location


_Versions = dict[tuple[str, str], _Used]


def _check(context: PolicyContext) -> Iterator[Finding | Skipped]:
    base = context.base
    if base is None:
        yield Skipped(rule="M12", reason="name a commit to compare with (--base)")
        return
    tried: dict[tuple[str, str], tuple[int, ...]] | None = None
    for one in context.stacks.values():
        if not one.stack.settings.critical:
            continue
        path = one.folder.path
        raised = list(_list_raised(_now(context, path), _then(base, path)))
        if raised and tried is None:
            tried = _list_tried(context, base)
        for thing, new, old in raised:
            if (tried or {}).get(thing, ()) < new.major:
                yield _finding(one.stack.name, thing, new, old, base.name)


def _list_raised(now: _Versions, then: _Versions) -> Iterator[tuple[tuple[str, str], _Used, _Used]]:
    for thing, new in now.items():
        old = then.get(thing)
        if old is not None and new.major > old.major:
            yield thing, new, old


def _now(context: PolicyContext, path: str) -> _Versions:
    code = {
        file: said for one in context.called_folders(path) for file, said in context.folder(one).code.items()
    }
    return _list_versions(code, context.lock(path), path)


def _then(base: BaseCode, path: str) -> _Versions:
    code = {file: said for one in base.called_folders(path) for file, said in base.code(one).items()}
    return _list_versions(code, base.lock(path), path)


def _list_tried(context: PolicyContext, base: BaseCode) -> dict[tuple[str, str], tuple[int, ...]]:
    """Return the newest major versions that stacks which are not critical already had."""
    from stackyard.sources.stacks.kinds import STACK_FILE  # lazy: only where a version was raised

    folders = {one.folder.path for one in context.stacks.values() if base.files.get(one.folder.path)}
    folders |= {folder for folder, files in base.files.items() if STACK_FILE in files}
    found: dict[tuple[str, str], tuple[int, ...]] = {}
    for folder in folders:
        if not base.is_critical(folder):
            for thing, used in _then(base, folder).items():
                found[thing] = max(found.get(thing, ()), used.major)
    return found


def _list_versions(code: Mapping[str, CodeFacts], lock: LockFile | None, path: str) -> _Versions:
    found: _Versions = {}
    for file, said in code.items():
        for one in said.required.values():
            source = short_source(one.source)
            if not is_built_in(source):
                _add(found, ("provider", source), one.version, Location(file, one.version_line))
        for call in said.modules:
            if call.source is not None and classify(call.source) is SourceKind.REGISTRY:
                where = Location(file, call.version_line or call.line)
                _add(found, ("module", registry_address(call.source)), call.version, where)
    for source, locked in (lock.providers if lock is not None else {}).items():
        where = Location(f"{path}/{LOCK_FILE}", locked.line)
        _keep(found, ("provider", source), _Used(major_line(locked.version), str(locked.version), where))
    return found


def _add(found: _Versions, thing: tuple[str, str], constraint: str | None, where: Location) -> None:
    said = read_constraint(constraint or "")
    for term in () if said is None else said.terms:
        if term.operator not in _BOUNDS:
            _keep(found, thing, _Used(major_line(term.version), constraint or "", where))


def _keep(found: _Versions, thing: tuple[str, str], used: _Used) -> None:
    known = found.get(thing)
    if known is None or used.major > known.major:
        found[thing] = used


def _finding(stack: str, thing: tuple[str, str], new: _Used, old: _Used, base: str) -> Finding:
    word, name = thing
    return Finding(
        rule="M12",
        detail=(
            f"The critical stack `{stack}` goes from `{old.text}` to `{new.text}` of the {word} `{name}`, a "
            f"major version that no stack with `critical: false` has at {base}."
        ),
        where=new.where,
        remedy=(
            "Raise it first in a stack whose stack.yaml says `critical: false`, apply and merge that, then "
            "raise it here."
        ),
    )


RULE = Rule(
    id="M12",
    title="A new major version is tried in a stack that is not critical first",
    why="Major versions change what code means; what breaks should not be what everybody needs.",
    check=_check,
)
