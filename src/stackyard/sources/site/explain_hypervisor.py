"""Each value of a cluster or a node of `hypervisors/`, and the file and line that it came from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.base.redaction import MASK
from stackyard.sources.hypervisor.build import is_secret
from stackyard.sources.hypervisor.files import HypervisorFile
from stackyard.sources.hypervisor.words import SECTION_WORDS
from stackyard.sources.site.damaged import is_lost
from stackyard.sources.site.explain import ExplainedValue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.sources.hypervisor.build import Entry
    from stackyard.sources.site.document import Key
    from stackyard.sources.site.resolver import ConfigResolver

__all__ = ["explain_hypervisor"]

_Path = tuple["Key", ...]


def explain_hypervisor(resolver: ConfigResolver, name: str) -> list[ExplainedValue]:
    """Return every value of a file in its order; the secrets are masked.

    Raises:
        NotInSiteError: There is no such file.
        InvalidInputError: Something is wrong with it; the error carries every problem.
    """
    loaded = resolver.hypervisor(name)
    file = HypervisorFile.of(name, loaded.places, loaded.model, is_lost)
    head = "node" if file.is_node else "cluster"
    key = "node" if file.is_node else "api"
    said = getattr(loaded.model, key, None)
    values = [] if said is None else [_explain(file, head, (key,), said, None)]
    for entry in file.entries:
        section = _title(entry)
        for path, value in _leaves(dict(entry.values), ()):
            values.append(_explain(file, section, path, value, entry))
    return values


def _title(entry: Entry) -> str:
    words = SECTION_WORDS[entry.section.name]
    is_alone = entry.path == entry.section.path
    return words.noun if is_alone else f"{words.noun} {entry.name}"


def _leaves(value: Any, path: _Path) -> Iterator[tuple[_Path, Any]]:
    """Return the values inside of a value; a list of texts is one."""
    if isinstance(value, dict) and value and not is_secret(value):
        for key, part in value.items():
            yield from _leaves(part, (*path, key))
    elif isinstance(value, list | tuple) and any(isinstance(part, dict) for part in value):
        for index, part in enumerate(value):
            yield from _leaves(part, (*path, index))
    else:
        yield path, list(value) if isinstance(value, tuple) else value


def _explain(
    file: HypervisorFile, section: str, path: _Path, value: Any, entry: Entry | None
) -> ExplainedValue:
    where = file.places.place(path) if entry is None else file.place(entry, *path)
    key = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")
    if is_secret(value):
        why = f"`{value['secret']}` of the secrets"
        return ExplainedValue(section=section, key=key, value=MASK, where=where, why=why)
    return ExplainedValue(section=section, key=key, value=value, where=where)
