"""What a stack reads, from the cache where nothing that it is made of has changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.sources.stacks.stack_reads import StackReads

if TYPE_CHECKING:
    from stackyard.sources.stacks.code_reader import CodeReader
    from stackyard.sources.stacks.model import Stack
    from stackyard.sources.stacks.repository import StackRepository

__all__ = ["read_stack"]


def read_stack(repository: StackRepository, stack: Stack) -> StackReads:
    """Return what a stack reads, from the cache where nothing that it is made of has changed."""
    reader = repository.reader
    read = reader.known.get(stack.path)
    if read is None:
        read = reader.known[stack.path] = _read(repository, stack, reader)
    return read


def _read(repository: StackRepository, stack: Stack, reader: CodeReader) -> StackReads:
    folder = f"{repository.prefix}{stack.path}"
    names = repository.files.get(stack.path)
    # What is said beside the code counts too: which files of values there are.
    key = f"{folder}\0{_settings_key(stack)}"
    row = repository.cache.reads.get(key)
    if row is not None:
        try:
            known = StackReads.from_json(row)
        except ValueError:
            known = None
        if known is not None and _is_current(known, reader, folder, names):
            return known
    from stackyard.sources.stacks.walk import walk_code  # lazy: only for what is not in the cache

    found = walk_code(repository, stack, reader, folder)
    repository.cache.reads.put(key, found.to_json())
    return found


def _settings_key(stack: Stack) -> str:
    settings = stack.settings
    parts = (settings.watch, settings.var_files, settings.secrets, settings.backend_config, settings.domains)
    return "" if parts == ((), None, None, (), None) else repr(parts)


def _is_current(known: StackReads, reader: CodeReader, folder: str, names: tuple[str, ...] | None) -> bool:
    for path, number in known.made_of.items():
        if path[-1:] == "/":
            inner = path[:-1]
            if reader.signature(inner, names if inner == folder else None) != number:
                return False
        elif reader.tree.number(path) != number:
            return False
    return True
