"""The checkout that a stack is applied from: its commit, and whether its files are those of that commit."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stackyard.base.errors import InvalidInputError, Location

if TYPE_CHECKING:
    from stackyard.path.stacks.files import StackFiles
    from stackyard.sources.stacks.cache import StackCache
    from stackyard.sources.stacks.working_tree import WorkingTree

__all__ = ["NO_CHECKOUT", "Checkout", "DirtyCheckoutError", "OutdatedCheckoutError", "read_checkout"]

_SHOWN = 5


class DirtyCheckoutError(InvalidInputError):
    """Files that a stack reads differ from those of the commit, so no commit would show what was applied."""

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
    """A working tree of git; paths are from its top.

    Attributes:
        commit: The commit; empty outside of git, and before the first one.
        changed: Files that differ from those of the commit, or are not in it.
        missing: Files that were changed on the default branch since, and not here.
        branch: The default branch, for a person.
        top: The top of the tree.
    """

    commit: str = ""
    changed: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    branch: str = ""
    top: str = ""

    def commit_of(self, files: StackFiles) -> str:
        """Return the commit that files are those of; empty where they differ from it."""
        return "" if files.select(self.changed) else self.commit

    def require_clean(self, target: str, files: StackFiles) -> None:
        """Refuse files that are not those of an up-to-date commit.

        Args:
            target: The stack.
            files: The files that it reads.

        Raises:
            DirtyCheckoutError: Some are not committed.
            OutdatedCheckoutError: Some were changed on the default branch.
        """
        dirty = files.select(self.changed)
        if dirty:
            raise DirtyCheckoutError(
                f"{target} reads files with changes that are not committed: {_list(dirty)}.",
                where=Location(str(Path(self.top, dirty[0]))),
            )
        behind = files.select(self.missing)
        if behind:
            raise OutdatedCheckoutError(
                f"{target} reads files that {self.branch} has newer: {_list(behind)}."
            )


NO_CHECKOUT = Checkout()


def _list(paths: list[str]) -> str:
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return f"{', '.join(paths[:_SHOWN])}{more}"


async def read_checkout(tree: WorkingTree, cache: StackCache) -> Checkout:
    """Return the state of a working tree; `NO_CHECKOUT` outside of git.

    Args:
        tree: The files on disk.
        cache: Keeps what git says.

    Raises:
        GitError: git cannot tell.
    """
    if not tree.is_git:
        return NO_CHECKOUT
    from stackyard.clients.git.compare import Comparison  # lazy: only in a repository
    from stackyard.sources.stacks.changes import find_changes, find_default_tip  # lazy: as above

    git = Comparison(top=Path(tree.top))
    head = await git.find_commit("HEAD")
    if head is None:
        return NO_CHECKOUT
    changed = await find_changes(tree, cache, head)
    tip, branch = await find_default_tip(git)
    base = None if tip in ("", head) else await git.find_merge_base(tip, head)
    missing = (await git.list_changes([base], tip))[base] if base is not None and base != tip else None
    return Checkout(
        commit=head,
        changed=tuple(sorted(changed.files)),
        missing=tuple(sorted(missing or ())),
        branch=branch,
        top=tree.top,
    )
