"""What is planned and applied as one: `env:dev` on a node, with a state of its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from stackyard.base.errors import UsageError
from stackyard.base.names import escape_part
from stackyard.base.suggestions import did_you_mean
from stackyard.guard.declared import Declared
from stackyard.guard.implied import Overcommit
from stackyard.path.locate import nowhere
from stackyard.path.own_code import OwnCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from stackyard.base.redaction import Redactor
    from stackyard.clients.proxmox import Connection
    from stackyard.clients.ssh.host import Host
    from stackyard.desired import Desired, Secrets
    from stackyard.path.credentials.token_store import TokenStore
    from stackyard.path.former_owners import FormerOwner, Successor
    from stackyard.path.locate import Locate

__all__ = [
    "HasImpliedNames",
    "NeedsCleanWorktree",
    "Resolved",
    "Source",
    "SshAccess",
    "Target",
    "find_target",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One thing to plan and apply.

    Attributes:
        kind: Which source it comes from.
        name: What it is called there.
        node: The node or cluster that it is for.
    """

    kind: str
    name: str
    node: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"

    @property
    def state_name(self) -> str:
        """The name of its state; no two targets share one."""
        return f"{self.kind}/{escape_part(self.name)}/{escape_part(self.node)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SshAccess:
    """How the provider reaches the shell of nodes, for the few things the API cannot do.

    Attributes:
        user: Who logs in.
        nodes: Name, address and port of each node.
        logins: The login to each of them, by its name.
        other: The login to the others, but for their addresses.
    """

    user: str
    nodes: tuple[tuple[str, str, int], ...]
    logins: Mapping[str, Host]
    other: Host

    def __repr__(self) -> str:
        return f"SshAccess(user={self.user!r}, nodes={self.nodes!r})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """A target with everything that the way to its guests needs; its representation shows no secret."""

    target: Target
    desired: Desired
    secrets: Secrets
    connection: Connection
    redactor: Redactor
    ssh: SshAccess | None = None
    # The machine through which guests are reached; directly when absent.
    jump: Host | None = None
    # Which version of its source it comes from, where the source has versions; a plan is bound to it.
    version: str = ""
    # The folder or object that it was read from.
    source: str = ""
    # What the source says beside its guests, for readers of the inventory.
    extras: Mapping[str, Any] = field(default_factory=dict)
    # How much more than there is may be promised.
    overcommit: Overcommit = field(default_factory=Overcommit)
    # The user's own code that joins the configuration.
    code: OwnCode = field(default_factory=OwnCode)
    # Where tokens that are made for the target are kept, where it can have any.
    tokens: TokenStore | None = None
    # Targets that had objects of this one before, and targets that have what this one had.
    former: tuple[FormerOwner, ...] = ()
    successors: tuple[Successor, ...] = ()
    # What the layers below declare; found out when somebody asks.
    declared: Callable[[], Declared] = field(default=Declared, repr=False, compare=False)
    # Where a guest, or a field of it, is written in the input.
    locate: Locate = field(default=nowhere, repr=False, compare=False)


class Source(Protocol):
    """One kind of desired state, as the path sees it."""

    @property
    def kind(self) -> str:
        """The word before the colon."""
        ...

    def names(self) -> Sequence[str]:
        """Return what there is of this kind."""
        ...

    def is_current(self) -> bool:
        """Return whether the input is certainly what it was when this source read it."""
        ...

    def resolve(self, name: str, host: str | None) -> Resolved:
        """Return one of them, ready to be rendered.

        Raises:
            StackyardError: It is not there, or something is wrong with it.
        """
        ...

    def resolve_state(self, name: str, host: str | None) -> Resolved:
        """Return a target with nothing in it and the way to its cluster, for verbs that need the state alone.

        Raises:
            StackyardError: Nothing says how to reach the cluster.
        """
        ...


@runtime_checkable
class NeedsCleanWorktree(Protocol):
    """A source that runs only from a working tree without certain files."""

    async def require_clean(self) -> None:
        """Refuse a working tree that holds one of them.

        Raises:
            InvalidInputError: It does.
        """
        ...


@runtime_checkable
class HasImpliedNames(Protocol):
    """A source with targets that have no file, and are found by their kind and name alone."""

    def implied_names(self) -> Sequence[str]:
        """Return their names."""
        ...


def find_target(text: str, sources: Mapping[str, Source]) -> tuple[Source, str]:
    """Find the source that a target names: `KIND:NAME`, or a name alone where it is the only one.

    Raises:
        UsageError: There is no such target, or more than one.
    """
    kind, colon, name = text.partition(":")
    if colon:
        source = sources.get(kind)
        if source is None:
            known = ", ".join(f"`{word}:`" for word in sorted(sources))
            raise UsageError(f"There is no kind of target called `{kind}`; there is {known}.")
        _require_name(source, name)
        return source, name
    found = [source for source in sources.values() if text in source.names()]
    if len(found) == 1:
        return found[0], text
    if not found and text in sources and len(sources[text].names()) == 1:
        # `deployment`: a kind of which there is one.
        return sources[text], sources[text].names()[0]
    if found:
        options = " or ".join(f"`{source.kind}:{text}`" for source in found)
        raise UsageError(f"`{text}` is more than one target: say {options}.")
    raise UsageError(f"There is no target `{text}`.{_offer(sources.values(), text)}")


def _require_name(source: Source, name: str) -> None:
    implied = source.implied_names() if isinstance(source, HasImpliedNames) else ()
    if name not in source.names() and name not in implied:
        raise UsageError(f"There is no {source.kind} `{name}`.{_offer((source,), name)}")


def _offer(sources: Iterable[Source], text: str) -> str:

    known = [f"{source.kind}:{name}" for source in sources for name in source.names()]
    if not known:
        return " This folder has none: is it the right folder?"
    meant = did_you_mean(text, (word.partition(":")[2] for word in known))
    return meant or f" There is {', '.join(f'`{word}`' for word in known[:10])}."
