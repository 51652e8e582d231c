"""The checkout that a stack is applied from: its commit, and whether its files are those of that commit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.base.errors import InvalidInputError, Location

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

__all__ = ["NO_CHECKOUT", "Checkout", "DirtyCheckoutError", "OutdatedCheckoutError", "read_checkout"]

_SHOWN = 5


class DirtyCheckoutError(InvalidInputError):
    """Files that a stack reads differ from those of the commit, so that no one can tell what is applied."""

    code = "E-STACK-DIRTY"
    summary = "The checkout has changes that are not committed"
    default_remedy = "Commit them; or apply them as they are with --allow-dirty."


class OutdatedCheckoutError(InvalidInputError):
    """The default branch has changes of a stack that the checkout lacks: an apply would take them back."""

    code = "E-STACK-OUTDATED"
    summary = "The checkout is behind the default branch"
    default_remedy = "Merge or rebase onto the default branch; or apply this checkout with --allow-dirty."


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """A working tree of git.

    Attributes:
        commit: The commit; empty outside of git, and before the first one.
        changed: Files that differ from those of the commit, or are not in it, from the top of the tree.
        missing: Files that were changed on the default branch since, and not here.
        branch: The default branch, for a person.
        root: The top of the tree.
    """

    commit: str = ""
    changed: frozenset[str] = frozenset()
    missing: frozenset[str] = frozenset()
    branch: str = ""
    root: Path | None = None

    def commit_of(self, reads: Collection[str]) -> str:
        """Return the commit that files are those of; empty where they differ from it."""
        return "" if self.changed.intersection(reads) else self.commit

    def require_clean(self, target: str, reads: Collection[str]) -> None:
        """Refuse files that are not those of an up-to-date commit.

        Args:
            target: The stack.
            reads: The files that it reads, from the top of the tree.

        Raises:
            DirtyCheckoutError: Some are not committed.
            OutdatedCheckoutError: Some were changed on the default branch.
        """
        dirty = sorted(self.changed.intersection(reads))
        if dirty:
            raise DirtyCheckoutError(
                f"{target} reads files with changes that are not committed: {_list(dirty)}.",
                where=Location(str((self.root / dirty[0]) if self.root else dirty[0])),
            )
        behind = sorted(self.missing.intersection(reads))
        if behind:
            raise OutdatedCheckoutError(
                f"{target} reads files that {self.branch} has newer: {_list(behind)}."
            )


NO_CHECKOUT = Checkout()


def _list(paths: list[str]) -> str:
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return f"{', '.join(paths[:_SHOWN])}{more}"


async def read_checkout(root: Path) -> Checkout:
    """Return the state of a working tree; `NO_CHECKOUT` outside of git.

    Raises:
        GitError: git cannot tell.
    """
    if not any((above / ".git").exists() for above in (root, *root.parents)):
        return NO_CHECKOUT
    from stackyard.sources.stacks.worktree import read_worktree  # lazy: only in a repository

    found = await read_worktree(root)
    return Checkout(
        commit=found.commit,
        changed=found.changed,
        missing=found.missing,
        branch=found.branch,
        root=root,
    )
