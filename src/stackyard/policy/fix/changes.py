"""What can be written without inventing anything, and what stays for a human."""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.base import files
from stackyard.policy.fix.pins import edit_pins
from stackyard.policy.fix.readme import edit_readme, interface_of, new_readme
from stackyard.policy.readme import is_readme
from stackyard.policy.rules.module_files import missing_parts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stackyard.policy.context import CodeFolder, PolicyContext

__all__ = ["FileChange", "find_changes", "write_changes"]

_NO_VARIABLES = "# This module has no input variables.\n"
# New files are code: everybody who works on the repository reads them.
_MODE = 0o644


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """A file that is written.

    Attributes:
        path: From the top of the tree.
        reason: What is written, in a few words.
        old: Its content before, None for a new file.
        new: Its content.
    """

    path: str
    reason: str
    old: bytes | None
    new: bytes

    def diff(self) -> str:
        """Return the difference as text."""
        import difflib  # lazy: only where it is shown

        before = (self.old or b"").decode("utf-8", "replace").splitlines(keepends=True)
        after = self.new.decode("utf-8", "replace").splitlines(keepends=True)
        names = ("/dev/null" if self.old is None else f"a/{self.path}", f"b/{self.path}")
        lines = difflib.unified_diff(before, after, *names)
        return "".join(
            line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
        )


def find_changes(context: PolicyContext, paths: Sequence[str] = ()) -> list[FileChange]:
    """Return everything that would be written, sorted by path.

    Args:
        context: The repository.
        paths: Only in these files and folders, from the top of the repository; else everywhere.
    """
    locked = _locked_versions(context)
    found: list[FileChange] = []
    for folder in context.folders:
        found += _change_pins(context, folder, locked.get(folder.path, {}))
    for folder in context.modules.values():
        found += _change_readme(context, folder)
        found += _add_files(folder)
    return sorted((one for one in found if _is_below(context, one.path, paths)), key=lambda one: one.path)


def write_changes(context: PolicyContext, changes: Sequence[FileChange]) -> None:
    """Write files, each as a whole or not at all.

    Raises:
        FileError: A file cannot be written.
    """
    from pathlib import Path  # lazy: only where something is written

    top = Path(context.repository.tree.top)
    for one in changes:
        path = top / one.path
        mode = _MODE if one.old is None else os.stat(path).st_mode & 0o777
        files.replace_file(path, one.new, mode=mode)


def _is_below(context: PolicyContext, path: str, paths: Sequence[str]) -> bool:
    place = context.from_root(path)
    return not paths or any(place == one or place.startswith(f"{one}/") or one == "." for one in paths)


def _locked_versions(context: PolicyContext) -> Mapping[str, Mapping[str, list[str]]]:
    """Return by folder and provider the versions in the lock files of all stacks that use the folder."""
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for one in context.stacks.values():
        lock = context.lock(one.folder.path)
        for folder in context.called_folders(one.folder.path) if lock is not None else ():
            for source, locked in lock.providers.items() if lock is not None else ():
                found[folder][source].append(str(locked.version))
    return found


def _change_pins(
    context: PolicyContext, folder: CodeFolder, locked: Mapping[str, list[str]]
) -> Iterator[FileChange]:
    for path, said in folder.code.items():
        if path.endswith(".json") or said.problem is not None or not (said.required or said.modules):
            continue
        old = context.read(path)
        # A link is changed where its file is.
        if old is None or os.path.islink(f"{context.repository.tree.top}/{path}"):
            continue
        new = edit_pins(old, lambda source: locked.get(source, ()))
        if new != old:
            yield FileChange(path=path, reason="versions with `~>`", old=old, new=new)


def _change_readme(context: PolicyContext, folder: CodeFolder) -> Iterator[FileChange]:
    if any(said.problem is not None for said in folder.code.values()):
        return
    name = next((name for name in folder.names if is_readme(name)), None)
    interface = interface_of(folder)
    if name is None:
        made = new_readme(folder.path.rpartition("/")[2], interface)
        path = f"{folder.path}/README.md"
        yield FileChange(path=path, reason="tables of inputs and outputs", old=None, new=made.encode())
        return
    path = f"{folder.path}/{name}"
    old = context.read(path)
    try:
        text = None if old is None else old.decode()
    except UnicodeDecodeError:
        return
    if old is None or text is None or os.path.islink(f"{context.repository.tree.top}/{path}"):
        return
    new = edit_readme(text, interface).encode()
    if new != old:
        yield FileChange(path=path, reason="tables of inputs and outputs", old=old, new=new)


def _add_files(folder: CodeFolder) -> Iterator[FileChange]:
    """Add variables.tf to a module without variables: nothing is missing in it then."""
    has_variables = any(said.variables or said.problem for said in folder.code.values())
    if "variables.tf" in missing_parts(folder.names) and not has_variables:
        path = f"{folder.path}/variables.tf"
        yield FileChange(path=path, reason="a file without variables", old=None, new=_NO_VARIABLES.encode())
