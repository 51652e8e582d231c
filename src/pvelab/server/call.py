"""One call as its handler sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pvelab.world.access.directory import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractAsyncContextManager, AbstractContextManager
    from pathlib import Path

    from pvelab.world.store import Store
    from pvelab.world.tasks import WorkFunction
    from pvelab.world.world import World

__all__ = ["Call", "Upload"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """A file that came with a call; it is gone after the call unless the handler moves it."""

    path: Path
    filename: str
    size: int


@dataclass(slots=True, kw_only=True)
class Call:
    """What a handler is given.

    Attributes:
        world: The lab.
        authid: Who calls: `user@realm` or `user@realm!token`; empty for the few calls open to no one.
        params: The parameters, path and query and body together, verified and in their declared types
            (booleans are 0 and 1). What was not sent is not there.
        upload: The file of a multipart upload.
        total: Set it where the answer is one page of a longer list.
        changes: Set it where the answer carries a diff of pending changes beside its data.
    """

    world: World
    authid: str
    params: Mapping[str, Any]
    upload: Upload | None = None
    total: int | None = None
    changes: str | None = None

    @property
    def store(self) -> Store:
        """The documents."""
        return self.world.store

    @property
    def node(self) -> str:
        """The node that the path names, or the one that answers calls which name none."""
        named = self.params.get("node")
        return str(named) if named and named != "localhost" else self.world.cluster.local()

    @property
    def vmid(self) -> int:
        """The guest that the path names."""
        return int(self.params["vmid"])

    @property
    def is_root(self) -> bool:
        """Whether root@pam itself calls, with a ticket: no token counts."""
        return self.authid == ROOT

    @property
    def sees_all(self) -> bool:
        """Whether the caller has every privilege everywhere, so that lists need not ask for each entry."""
        return self.world.permissions.is_powerful(self.authid)

    def now(self) -> int:
        """Return the lab time in whole seconds."""
        return int(self.world.clock.now())

    def may(self, path: str, *privileges: str, any_of: bool = False) -> bool:
        """Return whether the caller has all (or any) of some privileges; lists leave out the rest."""
        return self.world.permissions.has(self.authid, path, privileges, any_of=any_of)

    def check(self, path: str, *privileges: str, any_of: bool = False) -> None:
        """Refuse the call unless the caller has all (or any) of some privileges.

        Raises:
            PveError: 403.
        """
        self.world.permissions.check(self.authid, path, privileges, any_of=any_of)

    def transaction(self) -> AbstractContextManager[None]:
        """Make the changes of a block one; for `async` handlers, the others are inside one anyway."""
        return self.world.store.transaction()

    def guest_lock(self, kind: str, vmid: int) -> AbstractAsyncContextManager[None]:
        """Hold a guest's configuration file, for `async` handlers that change it."""
        return self.world.locks.guest(kind, vmid)

    def start_task(self, kind: str, ident: str | int, work: WorkFunction, *, node: str | None = None) -> str:
        """Start a task as the caller and return its UPID, which is the answer of most calls that do."""
        with self.world.store.transaction():
            return self.world.tasks.start(
                node or self.node, kind, str(ident), authid=self.authid or ROOT, work=work
            )
