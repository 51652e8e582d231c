"""Arguments that a user passes on to the engine: those that get round lock, store or guard are refused."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from stackyard.base.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stackyard.secrets.var_file import PrivateVarFile

__all__ = ["PassedArguments", "RefusedArgumentError", "read_arguments"]

# What the engine may be given, and whether its value may be the next word.
_ALLOWED = {
    "target": True,
    "target-file": True,
    "exclude": True,
    "exclude-file": True,
    "replace": True,
    "refresh": False,
    "var": True,
    "var-file": True,
    "parallelism": True,
    "compact-warnings": False,
    "concise": False,
    "show-sensitive": False,
}
# What is not, and what to use in its place.
_REFUSED = {
    "lock": "stackyard always locks the state; to wait longer for a lock, use --lock-wait SECONDS",
    "lock-timeout": "use --lock-wait SECONDS",
    "state": "the backend of the stack says where its state is",
    "state-out": "the backend of the stack says where its state is",
    "backup": "the store keeps every version of a state",
    "out": "use `stackyard plan --out FILE`",
    "auto-approve": "use --yes: stackyard applies exactly the plan that the guard checked",
    "destroy": "use `stackyard destroy`",
    "refresh-only": "use `stackyard drift`",
    "chdir": "name the stack: `stack:NAME`",
    "input": "OpenTofu never asks for values here; set them in a variables file or with -var",
    "json": "use --json or --events of stackyard",
    "json-into": "use --json or --events of stackyard",
    "no-color": "use --no-color of stackyard",
    "detailed-exitcode": "use --detailed-exitcode of stackyard",
    "generate-config-out": "write the resource block, or run the engine itself for a draft",
    "help": "run the engine itself",
}
# They make a plan for a part of the stack, or without a look at what is there.
_PARTIAL = ("target", "target-file", "exclude", "exclude-file")
_VAR_FILE = "var-file"
_SETTING = ("-var=", f"-{_VAR_FILE}=")
_DIGEST_CHARACTERS = 16


class RefusedArgumentError(UsageError):
    """An argument for OpenTofu would bypass the lock, the store, the guard or the saved plan."""

    code = "E-STACK-ARGUMENT"
    summary = "An argument after `--` is refused"
    default_remedy = "Remove it from the command line; use what the message names instead."


@dataclass(frozen=True, slots=True, kw_only=True)
class PassedArguments:
    """Arguments for the engine, checked.

    Attributes:
        words: As the engine gets them.
        notes: What a reader of the plan has to know of them.
        files: Files with values that the engine gets before them: descriptors of this process, which can be
            read only once (`-var-file=<(command)` of a shell), and the files that were named before those.
        secrets: Every text in those descriptors.
    """

    words: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    files: tuple[Path | PrivateVarFile, ...] = ()
    secrets: frozenset[str] = field(default=frozenset(), repr=False)

    def __bool__(self) -> bool:
        return bool(self.words or self.files)

    @property
    def values(self) -> tuple[str, ...]:
        """Those that set variables."""
        return tuple(word for word in self.words if word.startswith(_SETTING))

    @property
    def variables(self) -> frozenset[str]:
        """The names of the variables that `-var` sets."""
        return frozenset(word.split("=")[1] for word in self.words if word.startswith(_SETTING[0]))

    def describe(self, key: bytes) -> str:
        """Return them for what a plan is bound to: values only as a fingerprint, which needs the key."""
        if not self:
            return ""
        found = hmac.new(key, "\0".join(self.words).encode(errors="surrogateescape"), hashlib.sha256)
        for file in self.files:
            found.update(b"\0" + (str(file).encode() if isinstance(file, Path) else file.content))
        return " ".join((*self.shown, f"({found.hexdigest()[:_DIGEST_CHARACTERS]})"))

    @property
    def shown(self) -> tuple[str, ...]:
        """The same for a person: the values of `-var` may be secrets."""
        files = (file if isinstance(file, Path) else file.path for file in self.files)
        return (*(f"-{_VAR_FILE}={path}" for path in files), *(_hide(word) for word in self.words))


def read_arguments(words: Sequence[str]) -> PassedArguments:
    """Check the arguments after `--`.

    A variables file that is a descriptor of this process is read here.

    Raises:
        RefusedArgumentError: One of them is not passed on; the message names each.
        InvalidInputError: A descriptor has no values, or is not valid.
        FileError: It cannot be read.
    """
    given: list[str] = []
    notes: list[str] = []
    refused: list[str] = []
    pairs = list(_pair_up(words))
    for name, value in pairs:
        if not name:
            refused.append(f"`{value}` is not a flag of OpenTofu: write flags as -NAME=VALUE")
            continue
        if name not in _ALLOWED:
            refused.append(
                f"`-{name}`: {_REFUSED.get(name, 'stackyard does not pass this flag to OpenTofu')}"
            )
            continue
        if name in _PARTIAL:
            notes.append(f"Planned with -{name}={value}: other changes of the stack are left out.")
        if name == "refresh" and value == "false":
            notes.append("Planned with -refresh=false: what changed outside of the code was not looked at.")
        given.append(f"-{name}" if value is None else f"-{name}={value}")
    if refused:
        raise RefusedArgumentError(f"Refused after `--`: {'; '.join(refused)}.")
    passed = PassedArguments(words=tuple(given), notes=tuple(notes))
    is_read_once = any(name == _VAR_FILE and _is_descriptor(value) for name, value in pairs)
    return _read_descriptors(passed) if is_read_once else passed


def _is_descriptor(value: str | None) -> bool:
    return value is not None and value.startswith(("/dev/fd/", "/proc/self/fd/"))


def _read_descriptors(passed: PassedArguments) -> PassedArguments:
    """Read the descriptors; the words after the last of them stay as they are, because the last value wins.

    Raises:
        RefusedArgumentError: A value comes before a descriptor, and would be moved after it.
    """
    from stackyard.sources.stacks.var_file_content import read_descriptor  # lazy: few pass one on

    files: list[Path | PrivateVarFile] = []
    secrets: set[str] = set()
    option = f"-{_VAR_FILE}="
    last = max(at for at, word in enumerate(passed.words) if _is_descriptor(word.removeprefix(option)))
    kept: list[str] = []
    for word in passed.words[: last + 1]:
        if word.startswith("-var="):
            raise RefusedArgumentError(
                f"`{_hide(word)}` comes before a variables file that is a descriptor.",
                remedy="Write -var behind every -var-file: the last one that sets a variable wins.",
            )
        if not word.startswith(option):
            kept.append(word)
            continue
        path = Path(word.removeprefix(option))
        read = read_descriptor(path)
        files.append(path if read is None else read[0])
        secrets |= frozenset() if read is None else read[1]
    return PassedArguments(
        words=(*kept, *passed.words[last + 1 :]),
        notes=passed.notes,
        files=tuple(files),
        secrets=frozenset(secrets),
    )


def _pair_up(words: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """Yield each flag with its value, spelled in any way that the engine accepts; other words have no name.

    Raises:
        RefusedArgumentError: A flag lacks its value.
    """
    left = iter(words)
    for word in left:
        if not word.startswith("-") or not word.lstrip("-"):
            yield "", word
            continue
        name, has_value, value = word.lstrip("-").partition("=")
        if not has_value and _ALLOWED.get(name):
            following = next(left, None)
            if following is None:
                raise RefusedArgumentError(f"`{word}` lacks its value.", remedy=f"Write {word}=VALUE.")
            yield name, following
        else:
            yield name, value if has_value else None


def _hide(word: str) -> str:
    name, _, value = word.partition("=")
    return f"{name}={value.partition('=')[0]}=…" if name == "-var" else word
