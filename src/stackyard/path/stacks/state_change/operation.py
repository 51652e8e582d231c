"""What is done to a state: mv, rm, import, replace-provider, rollback. Every word of it is checked data."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.base.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["StateOperation", "StateVerb", "make_operation", "operation_of"]

_NAME = r"[^\W\d][\w-]*"
# What `count` and `for_each` give: a number, or a text in which quotes are escaped.
_KEY = r'\[(?:\d+|"(?:[^"\\]|\\.)*+")\]'
_MODULES = rf"module\.{_NAME}(?:{_KEY})?(?:\.module\.{_NAME}(?:{_KEY})?)*"
_RESOURCE = rf"(?!module\.)(?:data\.)?{_NAME}\.{_NAME}(?:{_KEY})?"
_ADDRESS = re.compile(rf"(?:{_MODULES}|(?:{_MODULES}\.)?{_RESOURCE})")
_PART = r"[A-Za-z0-9_][A-Za-z0-9._-]*"
_PROVIDER = re.compile(rf"(?:{_PART}(?::\d+)?/)?(?:{_PART}|-)/{_PART}")
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*")
_LONGEST = 2000
_MOST_ADDRESSES = 10_000


class StateVerb(enum.StrEnum):
    """What is done."""

    MOVE = "mv"
    REMOVE = "rm"
    IMPORT = "import"
    PROVIDER = "replace-provider"
    ROLLBACK = "rollback"


# What a document calls the words of each.
_FIELDS = {
    StateVerb.MOVE: ("from", "to"),
    StateVerb.REMOVE: ("addresses",),
    StateVerb.IMPORT: ("address", "id"),
    StateVerb.PROVIDER: ("from", "to"),
    StateVerb.ROLLBACK: ("version",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StateOperation:
    """One change of a state.

    Attributes:
        verb: What is done.
        words: To what: addresses, providers, the id of a resource, a version.
    """

    verb: StateVerb
    words: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join((self.verb.value, *self.words))

    def document(self) -> dict[str, Any]:
        """Return it as a document has it."""
        names = _FIELDS[self.verb]
        values: tuple[Any, ...] = (list(self.words),) if self.verb is StateVerb.REMOVE else self.words
        return {"verb": self.verb.value, **dict(zip(names, values, strict=True))}


def make_operation(verb: StateVerb, words: tuple[str, ...]) -> StateOperation:
    """Check what is to be done.

    Raises:
        UsageError: A word is not what it has to be.
    """
    if verb is StateVerb.REMOVE and not 0 < len(words) <= _MOST_ADDRESSES:
        raise UsageError("`rm` needs at least one address.")
    for word in words:
        if not word or len(word) > _LONGEST or not word.isprintable() or word.startswith("-"):
            shown = word[:60].encode("unicode_escape").decode()
            raise UsageError(f"`{shown}` is refused: printable words that begin with no dash are taken.")
    addresses = {StateVerb.MOVE: words, StateVerb.REMOVE: words, StateVerb.IMPORT: words[:1]}
    for word in addresses.get(verb, ()):
        if not _ADDRESS.fullmatch(word):
            raise UsageError(f"`{word}` is no address of a resource or module, such as module.web.aws_vpc.a.")
    if verb is StateVerb.PROVIDER:
        for word in words:
            if not _PROVIDER.fullmatch(word):
                raise UsageError(f"`{word}` is no provider, such as registry.opentofu.org/bpg/proxmox.")
    if verb is StateVerb.ROLLBACK and not _VERSION.fullmatch(words[0]):
        raise UsageError(
            f"`{words[0]}` is no version: a number of the store, or the id of an applied change."
        )
    return StateOperation(verb=verb, words=words)


def operation_of(said: Mapping[str, Any]) -> StateOperation:
    """Read an operation from a document.

    Raises:
        UsageError: It is none.
    """
    try:
        verb = StateVerb(said.get("verb", ""))
    except (ValueError, TypeError):
        known = ", ".join(one.value for one in StateVerb)
        raise UsageError(f"The operation has no verb of: {known}.") from None
    names = _FIELDS[verb]
    if set(said) != {"verb", *names}:
        raise UsageError(f"The operation {verb} has exactly: verb, {', '.join(names)}.")
    values = said["addresses"] if verb is StateVerb.REMOVE else [said[name] for name in names]
    if not isinstance(values, list) or not all(isinstance(one, str) for one in values):
        raise UsageError(f"The operation {verb} takes texts.")
    return make_operation(verb, tuple(values))
