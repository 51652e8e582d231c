"""A lab, a site around it, and an object whose guests are there already."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.deployment import CONTAINER, SMALL, edited, text_of
from tests.support.engine import real_engine
from tests.support.path import Yard, lasting_home, make_yard

from stackyard import lab
from stackyard.clients.objects import SqliteObjects
from stackyard.engine.version import Flavour
from stackyard.sources.deployment.embedded import EmbeddedStore
from stackyard.sources.deployment.store import VersionAuthor

__all__ = ["TWO", "Rig", "running_rig", "shared_rig"]

# Two guests on the storage that a lab has.
TWO: dict[str, Any] = edited(
    SMALL,
    datastore_default="local-lvm",
    network_cidrs={"compute": "10.0.10.0/24"},
    containers__second={**CONTAINER, "vm_id": 124, "hostname": "second"},
)


@dataclass
class Rig:
    """A site in a lab, with an object in its embedded store."""

    yard: Yard

    @contextlib.contextmanager
    def store(self) -> Iterator[EmbeddedStore]:
        """Open the store behind the back of everything."""
        folder = self.yard.folder / ".stackyard" / "deployment"
        folder.mkdir(parents=True, exist_ok=True)
        store = EmbeddedStore(SqliteObjects(folder / "objects.sqlite"), "the object")
        try:
            yield store
        finally:
            store.close()

    def plant(self, content: Mapping[str, Any] | str) -> str:
        """Make something the current object, valid or not; return its version."""
        text = content if isinstance(content, str) else text_of(content)
        with self.store() as store:
            current = store.read()
            replaces = None if current is None else current.version
            return store.write(text.encode(), replaces=replaces, authored=VersionAuthor(by="test")).id

    def current(self) -> dict[str, Any]:
        with self.store() as store:
            found = store.read()
        assert found is not None
        data = json.loads(found.data)
        assert isinstance(data, dict)
        return data

    def versions(self) -> int:
        with self.store() as store:
            return len(list(store.history()))

    def error(self, *arguments: str, status: int) -> dict[str, Any]:
        """Run the program, which fails; return its error."""
        document = self.yard.json(*arguments, status=status)["error"]
        assert isinstance(document, dict)
        return document


@contextlib.contextmanager
def running_rig(
    folder: Path, *, is_applied: bool = True, env: Mapping[str, str] | None = None
) -> Iterator[Rig]:
    engine = real_engine(Flavour.TOFU)
    with lab.running(nodes=("pve1", "pve2"), ssh_port=0) as running:
        yard = make_yard(running, folder / "site", STACKYARD_TOFU=str(engine.path), **(env or {}))
        rig = Rig(yard)
        rig.plant(TWO)
        if is_applied:
            yard.run("apply", "deployment", "--no-verify")
        yield rig


@contextlib.contextmanager
def shared_rig(folder: Path) -> Iterator[Rig]:
    """Give a rig for all tests of a module: with a home of its own, which none of the tests has."""
    with lasting_home(folder) as env, running_rig(folder, env=env) as rig:
        yield rig
