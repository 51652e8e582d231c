"""The rules of the provider for values, checked in `hypervisors/` before an engine reads the files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import Kind
from stackyard.guard.names_used.users import field_in_file
from stackyard.provider.registry import load
from stackyard.provider.validate import check_block
from stackyard.provider.values import UNKNOWN
from stackyard.sources.hypervisor.build import is_secret
from stackyard.sources.hypervisor.files import HypervisorFile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.base.diagnostics import Diagnostics
    from stackyard.base.errors import Location
    from stackyard.provider.problems import Problem
    from stackyard.provider.registry import Registry
    from stackyard.sources.hypervisor.build import Entry
    from stackyard.sources.site.load import Site

__all__ = ["check_provider_rules"]

BAD_VALUE = Kind(
    code="E-HYPERVISOR-VALUE",
    summary="The provider does not take a value",
    remedy="Correct the value as the finding says; docs/reference/hypervisors.md lists all attributes.",
)


def check_provider_rules(site: Site, found: Diagnostics) -> None:
    """Check the values of every file of a cluster or a node.

    Args:
        site: The site.
        found: Has the findings of its other checks, and takes those of this one.
    """
    files = {**site.damaged.get("hypervisors", {}), **site.hypervisors}
    if not files:
        return
    registry = load()
    # One finding for a place is enough.
    known = {_spot(one.where) for one in found.errors if one.where is not None}
    for name, loaded in files.items():
        file = HypervisorFile.of(name, loaded.places, loaded.model, _is_whole)
        for entry in file.entries:
            for problem in _list_problems(registry, file, entry):
                where = _locate(file, entry, problem)
                if _spot(where) not in known:
                    about = f"{entry.section.name}.{entry.name}".removesuffix(f".{entry.section.path[-1]}")
                    found.add(BAD_VALUE, f"{about}: {problem.detail}", where)


def _is_whole(*_keys: object) -> bool:
    """Return that nothing is lost: what is left of a file is checked as it is."""
    return False


def _spot(where: Location) -> tuple[str, int | None, int | None]:
    return where.path.rpartition("/")[2], where.line, where.column


def _list_problems(registry: Registry, file: HypervisorFile, entry: Entry) -> Iterator[Problem]:
    known = registry.resources.get(entry.key.type)
    if known is None:
        return
    config = _read_values(file, entry)
    problems = list(check_block(known.schema.block, config))
    yield from problems
    check = getattr(known.kind, "validate", None)
    if check is not None and not problems:
        yield from (one for one in check(config) if one.is_error)


def _read_values(file: HypervisorFile, entry: Entry) -> dict[str, Any]:
    """Return the attributes of an entry, as its resource has them; a secret is unknown."""
    section = entry.section
    values = {
        section.names.get(name, name): _plain(value)
        for name, value in entry.values.items()
        if name not in section.apart and not (name == "type" and len(section.kinds) > 1)
    }
    if section.key:
        values[section.key] = entry.name
    if section.node:
        values[section.node] = file.node
    return values


def _plain(value: Any) -> Any:
    if is_secret(value):
        return UNKNOWN
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


def _locate(file: HypervisorFile, entry: Entry, problem: Problem) -> Location:
    """Return where a problem is; the name of an entry is its key."""
    if problem.path[:1] == (entry.section.key,):
        return file.key_place(entry)
    return file.place(entry, *field_in_file(entry.kind, problem.path))
