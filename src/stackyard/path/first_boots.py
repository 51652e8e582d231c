"""What the operator made for the first boot of each guest, and keeps beside the state: keys and tokens.

It is made once and stays the same as long as the guest is there, so that a plan of the same input is the same
plan. A guest knows its own host key from its cloud-init, and anyone who logs in knows the public half.
"""

from __future__ import annotations

import contextlib
import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

from stackyard.base.documents.jsontext import parse_json
from stackyard.clients.objects import ABSENT, ConflictError, StoreDamagedError
from stackyard.desired import HostKey, Secret
from stackyard.sources.site.pull import OwnBoot, boot_parts
from stackyard.sources.store.sealed import open_sealed
from stackyard.state import layout

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from stackyard.clients.objects import Objects, Tag
    from stackyard.path.target import Target
    from stackyard.sources.store import ChosenStore

__all__ = ["BootRecord", "FirstBoots", "Pull", "decode_boots", "encode_boots", "own_boots"]

_ATTEMPTS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Pull:
    """With what a guest fetches its spec.

    Attributes:
        server: The address of the controller.
        pin: The SHA-256 of its public key.
        token: What the guest shows.
        is_settled: Whether the guest has done so: its first boot is past, and nothing changes it any more.
    """

    server: str
    pin: str
    token: str = field(repr=False)
    is_settled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BootRecord:
    """What was made for one guest."""

    private_key: str = field(repr=False)
    public_key: str
    pull: Pull | None = None

    @classmethod
    def _read(cls, document: Mapping[str, Any]) -> BootRecord:
        pull = document.get("pull")
        return cls(
            private_key=str(document["private_key"]),
            public_key=str(document["public_key"]),
            pull=None if pull is None else Pull(**pull),
        )


class FirstBoots:
    """The records of the guests of one target.

    Args:
        store: Where what runs leave is kept; the records are sealed there with the key of the site.
        target: The target.
    """

    def __init__(self, store: ChosenStore, target: Target) -> None:
        self._store = store
        self._key = layout.guests(target.state_name)

    def read(self) -> Mapping[str, BootRecord]:
        """Return what there is, by the names of guests.

        Raises:
            SiteKeyMissingError: The key that sealed it is not here.
            StoreError: It cannot be read.
        """
        with contextlib.closing(self._store.read()) as objects:
            # The key is asked for only where there is something to open.
            if objects.get(self._key) is None:
                return {}
            return self._read(open_sealed(self._store, objects))[0]

    def _read(self, sealed: Objects) -> tuple[dict[str, BootRecord], Tag | None]:
        stored = sealed.get(self._key)
        if stored is None:
            return {}, None
        return decode_boots(stored.data, self._key), stored.tag

    def ensure(self, names: Iterable[str]) -> Mapping[str, BootRecord]:
        """Return the records of these guests, made where there are none.

        Raises:
            StoreError: They cannot be read or written.
        """
        wanted = list(names)
        known = self.read()
        if all(name in known for name in wanted):
            return {name: known[name] for name in wanted}
        # Before the first attempt: making a key takes longer than storing it.
        made = {name: _new_record() for name in wanted if name not in known}

        def add(records: dict[str, BootRecord]) -> None:
            for name, record in made.items():
                records.setdefault(name, record)

        records = self._change(add)
        return {name: records[name] for name in wanted}

    def give(self, pulls: Mapping[str, Pull]) -> None:
        """Set with what guests fetch their specs; one that has done so keeps what it has.

        Raises:
            StoreError: It cannot be read or written.
        """
        self.ensure(pulls)

        def give(records: dict[str, BootRecord]) -> None:
            for name, pull in pulls.items():
                had = records[name].pull
                if had is None or not had.is_settled:
                    records[name] = dataclasses.replace(records[name], pull=pull)

        self._change(give)

    def settle(self, names: Collection[str]) -> None:
        """Remember that guests have fetched their specs.

        Raises:
            StoreError: It cannot be read or written.
        """
        known = self.read() if names else {}
        if not any(_is_open(known[name]) for name in names if name in known):
            return

        def settle(records: dict[str, BootRecord]) -> None:
            for name in names:
                record = records.get(name)
                if record is not None and record.pull is not None:
                    settled = dataclasses.replace(record.pull, is_settled=True)
                    records[name] = dataclasses.replace(record, pull=settled)

        self._change(settle)

    def forget(self, names: Collection[str]) -> None:
        """Forget guests that are no more.

        Raises:
            StoreError: It cannot be read or written.
        """

        def forget(records: dict[str, BootRecord]) -> None:
            for name in names:
                records.pop(name, None)

        if self.read().keys() & set(names):
            self._change(forget)

    def _change(self, change: Callable[[dict[str, BootRecord]], None]) -> Mapping[str, BootRecord]:
        """Change the records, no matter who else does at the same time, and return them."""
        with contextlib.closing(self._store.open()) as objects:
            sealed = open_sealed(self._store, objects)
            for _ in range(_ATTEMPTS):
                records, tag = self._read(sealed)
                change(records)
                try:
                    sealed.put(self._key, encode_boots(records), expect=ABSENT if tag is None else tag)
                except ConflictError:
                    continue
                return records
        raise ConflictError(self._key)


def encode_boots(records: Mapping[str, BootRecord]) -> bytes:
    """Return records as they are stored, before they are sealed."""
    return orjson.dumps({name: dataclasses.asdict(record) for name, record in records.items()})


def decode_boots(data: bytes, where: str) -> dict[str, BootRecord]:
    """Return records that were stored.

    Raises:
        StoreDamagedError: They are something else.
    """
    try:
        return {name: BootRecord._read(record) for name, record in parse_json(data).items()}
    except (ValueError, KeyError, TypeError, AttributeError) as err:
        raise StoreDamagedError(
            f"{where} does not hold the keys of guests.",
            remedy="Restore it from a copy: guests that are there show the keys that it holds.",
        ) from err


def _is_open(record: BootRecord) -> bool:
    return record.pull is not None and not record.pull.is_settled


def _new_record() -> BootRecord:
    from stackyard.clients.ssh.keys import new_key_pair  # lazy: cryptography, for guests that are new

    pair = new_key_pair()
    return BootRecord(private_key=pair.private, public_key=pair.public)


def own_boots(records: Mapping[str, BootRecord]) -> tuple[dict[str, OwnBoot], dict[str, str]]:
    """Return what guests have of their own at their first boot, and the values of the secrets in that."""
    boots, values = {}, {}
    for name, record in records.items():
        private = Secret(secret=f"guests.{name}.host_key")
        values[private.secret] = record.private_key
        pull: dict[str, Any] | None = None
        if record.pull is not None:
            token = f"guests.{name}.token"
            values[token] = record.pull.token
            pull = boot_parts(
                server=record.pull.server, identity=name, token={"secret": token}, pin=record.pull.pin
            )
        key = HostKey(public=record.public_key, private=private)
        boots[name] = OwnBoot(host_key=key, pull=pull)
    return boots, values
