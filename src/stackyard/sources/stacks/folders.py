"""Folders of generated code as stacks: no `stack.yaml`, and none of the conventions for stacks."""

from __future__ import annotations

import os
from types import MappingProxyType
from typing import TYPE_CHECKING

from stackyard.sources.stacks.cache import open_cache
from stackyard.sources.stacks.code_reader import CodeReader
from stackyard.sources.stacks.model import Stack, StackSettings
from stackyard.sources.stacks.repository import StackRepository
from stackyard.sources.stacks.working_tree import open_tree

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["open_folders"]


def open_folders(root: Path, folders: Mapping[str, Path]) -> StackRepository:
    """Return a repository whose stacks are certain folders, by name, and no others.

    Args:
        root: The top of the repository.
        folders: The folders, which may not be there yet.
    """
    tree = open_tree(root)
    cache = open_cache(root, tree)
    prefix = os.path.relpath(root, tree.top)
    paths = {name: os.path.relpath(folder, root) for name, folder in folders.items()}
    settings = StackSettings(secrets=())
    return StackRepository(
        root=root,
        stacks=MappingProxyType(
            {
                name: Stack(name=name, folder=folder, path=paths[name], settings=settings)
                for name, folder in folders.items()
            }
        ),
        broken=MappingProxyType({}),
        files=MappingProxyType({paths[name]: _list_names(folder) for name, folder in folders.items()}),
        tree=tree,
        cache=cache,
        reader=CodeReader(tree, cache),
        prefix="" if prefix == "." else f"{prefix}/",
    )


def _list_names(folder: Path) -> tuple[str, ...]:
    return tuple(sorted(os.listdir(folder))) if folder.is_dir() else ()
