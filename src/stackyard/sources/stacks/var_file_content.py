"""Reading the variables files of a stack, and refusing secrets in clear where git would publish them."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stackyard.base.diagnostics import Diagnostic, Kind
from stackyard.base.errors import InvalidInputError, Location
from stackyard.secrets.base import SecretsKind
from stackyard.secrets.check.promises import is_secret_name
from stackyard.secrets.check.scan import NOT_ENCRYPTED, check_texts
from stackyard.secrets.keyring import Keyring
from stackyard.secrets.protected_file import detect, open_bytes, read_bytes
from stackyard.secrets.var_file import PrivateVarFile
from stackyard.sources.stacks.input_values import inputs_text
from stackyard.sources.stacks.tfvars import Tfvars, TfvarsError, read_tfvars
from stackyard.sources.stacks.value_check import check_values

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.base.diagnostics import Diagnostics
    from stackyard.sources.stacks.value_types import ValueType

__all__ = ["FileReader", "GitStatus", "read_descriptor"]

SENSITIVE = Kind(
    code="E-STACK-SENSITIVE-VALUE",
    summary="The value of a sensitive variable is in clear in a file that git tracks",
    remedy="Move it into an encrypted file (secrets.tfvars), and replace the secret at its service.",
)
EMPTY = Kind(
    code="E-STACK-VAR-FILE-EMPTY",
    summary="A variables file sets no variable",
    remedy="Restore its content, or remove the file: nothing empty is ever a plan.",
)
UNREADABLE = Kind(
    code="E-STACK-VAR-FILE-ENCRYPTED",
    summary="OpenTofu reads a variables file by itself, and it is encrypted",
    remedy="Give it a name that OpenTofu does not read by itself, such as secrets.tfvars.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GitStatus:
    """What git knows of some files."""

    tracked: frozenset[Path] = frozenset()
    ignored: frozenset[Path] = frozenset()


class FileReader:
    """Reads the variables files of one stack; what is wrong with them is added to the findings.

    Args:
        folder: The folder of the stack.
        status: What git knows of the files.
        sensitive: The variables that the code declares sensitive.
        types: The types of variables with objects in them.
        keyring: The keys of the user; those of the environment when absent.
        found: Takes the findings.

    Attributes:
        places: Where the value of each variable is set, the last place of several.
        secrets: Every text that must not be shown.
        contents: What the files hold, decrypted, by their names.
    """

    def __init__(
        self,
        folder: Path,
        status: GitStatus,
        *,
        sensitive: frozenset[str],
        types: Mapping[str, ValueType],
        keyring: Keyring | None,
        found: Diagnostics,
    ) -> None:
        self._folder = folder
        self._status = status
        self._sensitive = sensitive
        self._types = types
        self._keyring = keyring or Keyring()
        self._found = found
        self.places: dict[str, Location] = {}
        self.secrets: set[str] = set()
        self.contents: list[tuple[str, bytes]] = []

    def read_loaded(self, path: Path) -> None:
        """Read a file that the engine reads by itself."""
        data = read_bytes(path)
        if detect(data, path.name).kind is not SecretsKind.PLAIN:
            self._found.add(UNREADABLE, f"{path} is encrypted.", Location(str(path)))
            return
        self._read_clear(path, data, may_be_empty=True)

    def read_plain(self, path: Path) -> Path | PrivateVarFile:
        """Read a file that the engine is given; one that is encrypted is decrypted."""
        data = read_bytes(path)
        if is_secret_name(path.name) or detect(data, path.name).kind is not SecretsKind.PLAIN:
            return self._read_encrypted(path, data)
        self._read_clear(path, data, may_be_empty=False)
        return path

    def read_secret(self, path: Path) -> PrivateVarFile:
        """Read a file that has to be encrypted."""
        return self._read_encrypted(path, read_bytes(path))

    def _read_encrypted(self, path: Path, data: bytes) -> PrivateVarFile:
        opened = open_bytes(data, str(path), self._keyring)
        if opened.kind is SecretsKind.PLAIN:
            name = shlex.quote(str(path))
            self._found.add(
                NOT_ENCRYPTED,
                f"{path.name} is not encrypted. Its name marks it as a file with secrets: run "
                f"`stackyard secrets encrypt {name} --vault` or `ansible-vault encrypt {name}`.",
                Location(str(path), 1),
            )
            return PrivateVarFile(path=path, content=b"")
        plain = opened.plain
        read = self._parse(path, plain)
        if read is None:
            return PrivateVarFile(path=path, content=b"")
        self._note(path, plain, read, may_be_empty=False)
        self.secrets |= read.strings
        if not path.name.endswith(".json"):
            return PrivateVarFile(path=path, content=plain)
        # The engine tells JSON by the name of a file, and this one has none.
        values = {name: one.value for name, one in read.variables.items()}
        lines = tuple(one.where.line or 1 for one in read.variables.values())
        return PrivateVarFile(path=path, content=inputs_text(values), lines=lines)

    def _read_clear(self, path: Path, data: bytes, *, may_be_empty: bool) -> None:
        read = self._parse(path, data)
        if path in self._status.tracked:
            self._found.extend(check_texts({str(path): data.decode(errors="replace")}, {}))
            self._refuse_sensitive(path, read)
        if read is not None:
            self._note(path, data, read, may_be_empty=may_be_empty)
            if path in self._status.ignored:
                self.secrets |= read.strings

    def _refuse_sensitive(self, path: Path, read: Tfvars | None) -> None:
        for name, one in read.variables.items() if read is not None else ():
            if name in self._sensitive and one.value not in (None, "", [], {}):
                self._found.add(SENSITIVE, f"{path} sets `{name}`, which is sensitive.", one.where)

    def _parse(self, path: Path, data: bytes) -> Tfvars | None:
        try:
            return read_tfvars(data, str(path))
        except TfvarsError as err:
            kind = Kind(code=err.code, summary=err.summary, remedy=err.remedy or "")
            self._found.extend(err.diagnostics or [Diagnostic(kind=kind, detail=err.detail, where=err.where)])
            return None

    def _note(self, path: Path, data: bytes, read: Tfvars, *, may_be_empty: bool) -> None:
        if not read.variables and not may_be_empty:
            self._found.add(EMPTY, f"{path} sets no variable.", Location(str(path)))
        self._found.extend(check_values(read, data, self._types))
        self.places.update({name: one.where for name, one in read.variables.items()})
        inside = path.relative_to(self._folder) if path.is_relative_to(self._folder) else path
        self.contents.append((inside.as_posix(), data))


def read_descriptor(path: Path) -> tuple[PrivateVarFile, frozenset[str]] | None:
    """Read a variables file that is a descriptor of this process, as a shell's `<(command)` gives one.

    It can be read only once, and the engine runs several times: so it is read here.

    Returns:
        The values and what must not be shown of them; None for a path that is no descriptor.

    Raises:
        TfvarsError: It is not valid.
        FileError: It cannot be read.
    """
    if path.parent not in (Path("/dev/fd"), Path("/proc/self/fd")) or not path.name.isdecimal():
        return None
    data = read_bytes(path)
    read = read_tfvars(data, str(path))
    if not read.variables:
        raise InvalidInputError(f"{path} sets no variable.", where=Location(str(path)), remedy=EMPTY.remedy)
    return PrivateVarFile(path=path, content=data), read.strings
