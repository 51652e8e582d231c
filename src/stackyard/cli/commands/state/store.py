"""The store that a command line chooses, and the states in it."""

from __future__ import annotations

import contextlib
import functools
import getpass
import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from stackyard.base.errors import UsageError
from stackyard.cli.unstored import warn_of_unstored_states

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stackyard.clients.objects import Objects
    from stackyard.sources.store import ChosenStore
    from stackyard.state import Actor, Policy, StateService

__all__ = ["KEY_VARIABLE", "StoreChoice", "current_actor", "open_service", "store_options"]

Function = TypeVar("Function", bound="Callable[..., Any]")

KEY_VARIABLE = "STACKYARD_STATE_KEY"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreChoice:
    """The store that the user means.

    Attributes:
        data: A folder.
        store: An address, `s3://bucket/prefix`, `postgresql://user@host/database` or `https://host:port`.
        key_file: The file with the keys of a store that is encrypted at rest.
    """

    data: str | None = None
    store: str | None = None
    key_file: str | None = None

    @property
    def is_default(self) -> bool:
        """Whether the user named none."""
        return self.data is None and self.store is None

    def place(self) -> Path | str:
        """Return where the store is.

        Raises:
            UsageError: Two stores are named.
        """
        if self.data is not None and self.store is not None:
            raise UsageError("--data and --store name two stores; give one.")
        if self.store is not None:
            return self.store
        if self.data is not None:
            return Path(self.data)
        chosen = default_store()
        return chosen.address or chosen.folder

    def base(self) -> Path:
        """Return the folder beside which runs on this machine work."""
        return Path(self.data).parent if self.data is not None else default_store().base

    def describe(self) -> str:
        """Return the store for a person; an address never holds a secret."""
        return str(self.place())


def default_store() -> ChosenStore:
    """Return the store that the input here names, the embedded one beside it, or the one of the user."""
    from stackyard.sources.site.store_choice import find_store  # lazy: only without --data and --store

    return find_store()


def store_options(function: Function) -> Function:
    """Add the options that choose a store; the command is given a `StoreChoice` as `choice`."""

    @functools.wraps(function)
    def choose_store(
        *args: Any, data: str | None, store: str | None, key_file: str | None, **given: Any
    ) -> Any:
        choice = StoreChoice(data=data, store=store, key_file=key_file)
        return function(*args, choice=choice, **given)

    options = (
        click.option(
            "--data",
            metavar="DIR",
            help="The store in this folder (default: the store of the site, else of the user).",
        ),
        click.option(
            "--store",
            metavar="URL",
            help="The store in a bucket, in a database or at a state service:"
            " s3://bucket/prefix[?endpoint=https://...], postgresql://user@host/database[?schema=NAME],"
            " https://host:port[?fingerprint=AB:CD...].",
        ),
        click.option(
            "--key-file",
            metavar="FILE",
            help=f"The keys of a store that is encrypted at rest (also: {KEY_VARIABLE}).",
        ),
    )
    decorated: Any = choose_store
    for option in reversed(options):
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]


@contextlib.contextmanager
def open_service(
    choice: StoreChoice, *, create: bool = False, policy: Policy | None = None
) -> Iterator[StateService]:
    """Give the states of a store, for the length of a block.

    Args:
        choice: The store.
        create: Whether a store that is not there is made. Otherwise one that the user named must exist, and
            the default one is empty as long as nothing was stored.
        policy: What is allowed, and for how long versions are kept.

    Raises:
        StoreError: The store cannot be used.
    """
    from stackyard.state import StateService  # lazy: only when a verb runs

    if choice.is_default:
        warn_of_unstored_states(choice.base())
    objects = _open(choice, create=create)
    try:
        yield StateService(objects, policy)
    finally:
        objects.close()


def _open(choice: StoreChoice, *, create: bool) -> Objects:
    from stackyard.clients.objects import MemoryObjects, open_objects  # lazy: only when a verb runs
    from stackyard.clients.objects.open_store import DATABASE  # lazy: as above

    if choice.is_default and choice.key_file is None:
        # As runs open it: a store that was moved is refused.
        chosen = default_store()
        objects = chosen.read_as_is()
        if not create:
            return objects
        # States are not sealed: the key of the site, which may be in its secrets, is not needed.
        objects.close()
        return chosen.open_as_is(create=True)
    place = choice.place()
    if choice.is_default and not create and isinstance(place, Path) and not (place / DATABASE).exists():
        return MemoryObjects()
    objects = open_objects(place, ring=_ring(choice), create=create)
    if choice.is_default:
        _require_not_left(objects)
    return objects


def _require_not_left(objects: Objects) -> None:
    """Refuse the store of the site here where everything in it was moved to another one."""
    from stackyard.sources.store.identity import read_identity  # lazy: only when a verb runs

    try:
        identity = read_identity(objects)
        if identity is not None:
            identity.require_not_left()
    except BaseException:
        objects.close()
        raise


def _ring(choice: StoreChoice) -> Any:
    if choice.key_file is not None:
        from stackyard.base.files import read_text  # lazy: few stores are encrypted

        text = read_text(Path(choice.key_file))
    else:
        text = os.environ.get(KEY_VARIABLE, "")
    if choice.key_file is None and not text:
        return None
    from stackyard.clients.objects.sealed import KeyRing  # lazy: cryptography costs 50 ms

    return KeyRing.from_text(text)


def current_actor() -> Actor:
    """Return who runs this command, as audit logs name them."""
    from stackyard.state import Actor  # lazy: only when a verb runs

    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return Actor(principal=f"{user}@{socket.gethostname()}", address="command line")
