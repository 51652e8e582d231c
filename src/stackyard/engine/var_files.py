"""Files with values of input variables, those that must never be files included.

A `PrivateVarFile` reaches the engine through a descriptor that it inherits: the argument is `/dev/fd/7`, and
the content is in memory. The engine's messages name that descriptor too. So each of them is translated back
to the file that the user knows, and what it quotes of the content is left out.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.base.errors import FileError, Location, StackyardError
from stackyard.engine.version import Flavour
from stackyard.secrets.var_file import PrivateVarFile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.engine.workdir import Workdir

__all__ = [
    "NO_VAR_FILES",
    "OpenVarFiles",
    "PrivateVarFile",
    "PrivateVarFileError",
    "open_var_files",
]

# OpenTofu evaluates variables in backends, module sources and encryption, so each of its verbs takes values.
_TERRAFORM_VERBS = frozenset({"plan", "apply", "import"})
# How the engine quotes a file in text: `  on /dev/fd/7 line 3, in locals:`, then numbered lines.
_EXCERPT = r"(?P<head>^\W*on {name} line \d+[^\n]*\n)(?:^\W*\d+:[^\n]*\n?)+"
_QUOTED_LINE = re.compile(r"\W*\d+: ")


class PrivateVarFileError(StackyardError):
    """Values of variables cannot be passed to the engine without writing them to a file."""

    code = "E-TOFU-PRIVATE-VALUES"
    summary = "Secret values cannot be passed on"
    default_remedy = "Run the command on Linux with /proc mounted."


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenVarFiles:
    """The variables files of one run of the engine, while it runs.

    Attributes:
        arguments: What names them to the engine, in their order.
        descriptors: Those that the engine inherits.
        private: By the name that the engine knows, the file that is meant.
    """

    arguments: tuple[str, ...] = ()
    descriptors: tuple[int, ...] = ()
    private: tuple[tuple[str, PrivateVarFile], ...] = ()

    def locate(self, where: Location | None) -> Location | None:
        """Return a place that the engine names as that of the user's file."""
        for name, file in self.private:
            if where is not None and where.path == name:
                return Location(str(file.path), file.line(where.line), None if file.lines else where.column)
        return where

    def translate(self, text: str) -> str:
        """Return a text of the engine with the names of the user's files, and nothing quoted from them."""
        for name, file in self.private:
            if name in text:
                quoted = re.compile(_EXCERPT.format(name=re.escape(name)), re.MULTILINE)
                text = quoted.sub(lambda found: found["head"], text)
                path = str(file.path).replace("\\", r"\\")
                text = re.sub(rf"{re.escape(name)}(?!\d)", path, text)
        return text

    def quotes(self, line: str) -> bool:
        """Return whether a line of text that came alone may quote a private file."""
        return bool(self.private) and _QUOTED_LINE.match(line) is not None


NO_VAR_FILES = OpenVarFiles()


@contextlib.contextmanager
def open_var_files(workdir: Workdir, verb: str) -> Iterator[OpenVarFiles]:
    """Make the variables files of a folder ready for one run of a verb; a verb that takes none gets none.

    Raises:
        PrivateVarFileError: This system cannot pass a private one on.
        FileError: There is no memory or no folder for it.
    """
    if not workdir.var_files or not _takes_values(workdir.engine.flavour, verb):
        yield NO_VAR_FILES
        return
    with contextlib.ExitStack() as opened:
        arguments, private = [], []
        for file in workdir.var_files:
            if not isinstance(file, PrivateVarFile):
                arguments.append(f"-var-file={file.absolute()}")
                continue
            descriptor = _open_private(file)
            opened.callback(os.close, descriptor)
            name = f"/dev/fd/{descriptor}"
            _require_fresh_reads(name, descriptor)
            arguments.append(f"-var-file={name}")
            private.append((descriptor, name, file))
        yield OpenVarFiles(
            arguments=tuple(arguments),
            descriptors=tuple(descriptor for descriptor, _, _ in private),
            private=tuple((name, file) for _, name, file in private),
        )


def _takes_values(flavour: Flavour, verb: str) -> bool:
    return flavour is Flavour.TOFU or verb in _TERRAFORM_VERBS


def _open_private(file: PrivateVarFile) -> int:
    """Return a descriptor for a content that has no name."""
    try:
        try:
            return _open_memory(file.content)
        except (AttributeError, PermissionError, NotImplementedError):
            # Not Linux, or a sandbox without that call.
            return _open_unlinked(file.content)
    except OSError as err:
        raise FileError.from_os_error(err, "pass on the values of", file.path) from err


def _open_memory(content: bytes) -> int:
    descriptor = os.memfd_create("variables", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        _write(descriptor, content)
        _seal(descriptor)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _seal(descriptor: int) -> None:
    """Make the content final: what providers and provisioners inherit too, they cannot change."""
    seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SEAL
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)


def _open_unlinked(content: bytes) -> int:
    with tempfile.TemporaryDirectory(prefix="stackyard-") as folder:
        descriptor, name = tempfile.mkstemp(dir=folder)
        os.unlink(name)
    try:
        _write(descriptor, content)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _write(descriptor: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
    os.lseek(descriptor, 0, os.SEEK_SET)


def _require_fresh_reads(name: str, descriptor: int) -> None:
    """Refuse a system on which a second reader of the name would find the end: a file without values."""
    try:
        again = os.open(name, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as err:
        raise PrivateVarFileError(f"{name} cannot be opened: {err.strerror}.") from err
    try:
        os.lseek(again, 0, os.SEEK_END)
        if os.lseek(descriptor, 0, os.SEEK_CUR) != 0:
            raise PrivateVarFileError(f"On this system {name} can be read only once.")
    finally:
        os.close(again)
