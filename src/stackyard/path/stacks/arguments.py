"""Arguments that a user passes on to the engine: those that get round lock, store or guard are refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.base.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["PassedArguments", "RefusedArgumentError", "read_arguments"]

# What the engine may be given, and whether a value may stand behind it as a word of its own.
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
    "lock": "the state stays locked while it is worked on; --lock-wait says how long to wait for others",
    "lock-timeout": "use --lock-wait SECONDS",
    "state": "the backend of the stack says where its state is",
    "state-out": "the backend of the stack says where its state is",
    "backup": "the store keeps every version of a state",
    "out": "use `stackyard plan --out FILE`",
    "auto-approve": "stackyard applies exactly the plan that the guard has seen; --yes answers its question",
    "destroy": "use `stackyard destroy`",
    "refresh-only": "use `stackyard drift`",
    "chdir": "name the stack: `stack:NAME`",
    "input": "stackyard never lets the engine ask",
    "json": "use --json or --events of stackyard",
    "json-into": "use --json or --events of stackyard",
    "no-color": "stackyard reads what the engine says",
    "detailed-exitcode": "use --detailed-exitcode of stackyard",
    "generate-config-out": "write the resource block, or run the engine itself for a draft",
    "help": "run the engine itself",
}
# They make a plan for a part of the stack, or without a look at what is there.
_PARTIAL = ("target", "target-file", "exclude", "exclude-file")


class RefusedArgumentError(UsageError):
    """An argument for the engine would get round the lock, the store, the guard or the bound plan."""

    code = "E-STACK-ARGUMENT"
    summary = "An argument cannot be passed on to the engine"
    default_remedy = "Leave it out; the message says what to use in its place."


@dataclass(frozen=True, slots=True, kw_only=True)
class PassedArguments:
    """Arguments for the engine, checked.

    Attributes:
        words: As the engine gets them.
        notes: What a reader of the plan has to know of them.
    """

    words: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " ".join(self.words)

    @property
    def shown(self) -> tuple[str, ...]:
        """The same for a person: the values of `-var` may be secrets."""
        return tuple(_hide(word) for word in self.words)


def read_arguments(words: Sequence[str]) -> PassedArguments:
    """Check what stands behind `--`.

    Raises:
        RefusedArgumentError: One of them is not passed on; the message names each.
    """
    given: list[str] = []
    notes: list[str] = []
    refused: list[str] = []
    for name, value in _pair_up(words):
        if name not in _ALLOWED:
            refused.append(f"`-{name}`: {_REFUSED.get(name, 'it is not known to be safe')}")
            continue
        if name in _PARTIAL:
            notes.append(f"Planned with -{name}={value}: other changes of the stack are left out.")
        if name == "refresh" and value == "false":
            notes.append("Planned with -refresh=false: what changed outside of the code was not looked at.")
        given.append(f"-{name}" if value is None else f"-{name}={value}")
    if refused:
        raise RefusedArgumentError(f"Not passed on to the engine: {'; '.join(refused)}.")
    return PassedArguments(words=tuple(given), notes=tuple(notes))


def _pair_up(words: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """Yield each flag with its value, spelled in any way that the engine accepts.

    Raises:
        RefusedArgumentError: A word is no flag, or a flag lacks its value.
    """
    left = iter(words)
    for word in left:
        if not word.startswith("-") or word in ("-", "--"):
            raise RefusedArgumentError(
                f"`{word}` is no flag of the engine.", remedy="Write flags as -NAME=VALUE behind `--`."
            )
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
