"""The store of the stacks of a repository."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.base.directories import PROJECT_FOLDER
from stackyard.base.errors import InvalidInputError, Location
from stackyard.sources.site.store_choice import choose_store, read_site_store

if TYPE_CHECKING:
    from stackyard.sources.stacks.repository import StackRepository
    from stackyard.sources.store import ChosenStore

__all__ = ["CommittedStoreError", "store_of"]


class CommittedStoreError(InvalidInputError):
    """The folder with keys and states is part of the repository, or a link in it leads there."""

    code = "E-STACK-STORE-COMMITTED"
    summary = "The folder for keys and states is committed"
    default_remedy = (
        "Take it out of git with `git rm -r --cached .stackyard`, and remove it, unless all of it is yours."
    )


def store_of(repository: StackRepository) -> ChosenStore:
    """Return where what runs leave for the next is kept.

    Raises:
        CommittedStoreError: git tracks some of it, so that whoever writes the repository decides what it is.
    """
    tree, own = repository.tree, f"{repository.prefix}{PROJECT_FOLDER}"
    for path in tree.index.files if tree.index is not None else ():
        if path == own or path.startswith(f"{own}/"):
            raise CommittedStoreError(f"git tracks {path}.", where=Location(path))
    root = repository.root
    return choose_store(root, root / PROJECT_FOLDER, site_store=read_site_store(root))
