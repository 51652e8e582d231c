"""A command as one entry of a table."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pvelab.ssh.shell.interpreter import Shell
    from pvelab.ssh.shell.streams import Streams
    from pvelab.ssh.shell_session import ShellSession

__all__ = [
    "BOOLEAN",
    "FAILED",
    "INTEGER",
    "NOT_FOUND",
    "STRING",
    "WORDS",
    "Alias",
    "Command",
    "CommandCall",
    "PrintedAnswer",
    "Tree",
    "UsageProblem",
    "optional",
]

# What Perl's die ends with, and so every command of Proxmox that fails.
FAILED = 255
# The same after a file was looked for and not found: Perl takes the error of the system, if there was one.
NOT_FOUND = 2

STRING: Mapping[str, Any] = {"type": "string"}
INTEGER: Mapping[str, Any] = {"type": "integer"}
BOOLEAN: Mapping[str, Any] = {"type": "boolean", "optional": True}
WORDS: Mapping[str, Any] = {"type": "array", "optional": True}


def optional(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema of something that may be missing."""
    return {**schema, "optional": True}


class UsageProblem(Exception):  # noqa: N818 - read as the text of a usage message
    """A command line that a command does not understand.

    Args:
        text: What is wrong.
        notes: What the parser of options printed before.
    """

    def __init__(self, text: str, *notes: str) -> None:
        super().__init__(text)
        self.notes = notes


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedAnswer:
    """An answer to be printed.

    Attributes:
        data: What the API answered.
        schema: What it declares to return.
        options: How to print it: `output-format`, `noheader` and so on.
        parameters: What was asked for.
        renderers: How single values are shown to humans.
        streams: Where to.
    """

    data: Any
    schema: Mapping[str, Any]
    options: Mapping[str, Any]
    parameters: Mapping[str, Any]
    renderers: Mapping[str, str]
    streams: Streams


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandCall:
    """What a command with code of its own is given."""

    session: ShellSession
    shell: Shell
    parameters: Mapping[str, Any]
    streams: Streams

    @property
    def vmid(self) -> int:
        """The guest that the command names."""
        return int(self.parameters["vmid"])


Show = Callable[[PrintedAnswer], Awaitable[None]]
Own = Callable[[CommandCall], Awaitable[int]]
Adapt = Callable[[CommandCall], Awaitable[Mapping[str, Any]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One subcommand.

    Attributes:
        route: The method of the API that it calls; the node is always the one of the shell.
        arguments: The names of its plain arguments, in their order; `extra-args` takes all that are left.
        fixed: Parameters that are always sent and that no one can give.
        show: Prints the answer; nothing is printed without it, but the log of a task always is.
        formats: Whether it takes `--output-format` and its kin.
        follows_task: Whether it ends as the task does that it starts.
        parameters: Schemas beside those of the route, or all of them for a command with its own code.
        listed: The parameter that takes all plain arguments as one list.
        adapt: Changes the parameters before the call: what is read from a file, what has another name.
        own: Does the work in place of a call.
        is_raw: Whether its words are left as they are, in `extra-args`.
    """

    route: str = ""
    arguments: tuple[str, ...] = ()
    fixed: Mapping[str, Any] = field(default_factory=dict)
    show: Show | None = None
    formats: bool = False
    follows_task: bool = False
    parameters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    listed: str = ""
    adapt: Adapt | None = None
    own: Own | None = None
    is_raw: bool = False


@dataclass(frozen=True, slots=True)
class Alias:
    """Another name of a subcommand: `disk import`."""

    words: str


Tree = Mapping[str, "Command | Alias | Tree"]
