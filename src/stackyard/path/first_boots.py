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

from stackyard.base import directories, files, locks
from stackyard.base.documents.jsontext import parse_json
from stackyard.base.errors import FileError
from stackyard.desired import HostKey, Secret
from stackyard.sources.site.pull import OwnBoot, boot_parts

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from pathlib import Path

    from stackyard.path.target import Target

__all__ = ["BootRecord", "FirstBoots", "Pull", "own_boots"]


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
        base: The folder for what runs leave for the next.
        target: The target.
    """

    def __init__(self, base: Path, target: Target) -> None:
        self._path = base / "guests" / f"{target.state_name.replace('/', '--')}.json"

    def read(self) -> Mapping[str, BootRecord]:
        """Return what there is, by the names of guests.

        Raises:
            FileError: It cannot be read.
        """
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            return {}
        except OSError as err:
            raise FileError.from_os_error(err, "read", self._path) from err
        try:
            return {name: BootRecord._read(record) for name, record in parse_json(data).items()}
        except (ValueError, KeyError, TypeError, AttributeError) as err:
            raise FileError(
                f"{self._path} is not a file of keys of guests.",
                remedy="Restore it from a copy: guests that are there show the keys that it holds.",
            ) from err

    def ensure(self, names: Iterable[str]) -> Mapping[str, BootRecord]:
        """Return the records of these guests, made where there are none.

        Raises:
            FileError: They cannot be read or written.
        """
        wanted = list(names)
        known = self.read()
        if all(name in known for name in wanted):
            return {name: known[name] for name in wanted}
        with self._change_records() as records:
            for name in wanted:
                if name not in records:
                    records[name] = _new_record()
            return {name: records[name] for name in wanted}

    def give(self, pulls: Mapping[str, Pull]) -> None:
        """Set with what guests fetch their specs; one that has done so keeps what it has.

        Raises:
            FileError: It cannot be read or written.
        """
        self.ensure(pulls)
        with self._change_records() as records:
            for name, pull in pulls.items():
                had = records[name].pull
                if had is None or not had.is_settled:
                    records[name] = dataclasses.replace(records[name], pull=pull)

    def settle(self, names: Collection[str]) -> None:
        """Remember that guests have fetched their specs.

        Raises:
            FileError: It cannot be read or written.
        """
        known = self.read() if names else {}
        if not any(_is_open(known[name]) for name in names if name in known):
            return
        with self._change_records() as records:
            for name in names:
                record = records.get(name)
                if record is not None and record.pull is not None:
                    settled = dataclasses.replace(record.pull, is_settled=True)
                    records[name] = dataclasses.replace(record, pull=settled)

    def forget(self, names: Collection[str]) -> None:
        """Forget guests that are no more.

        Raises:
            FileError: It cannot be read or written.
        """
        if self.read().keys() & set(names):
            with self._change_records() as records:
                for name in names:
                    records.pop(name, None)

    @contextlib.contextmanager
    def _change_records(self) -> Iterator[dict[str, BootRecord]]:
        """Give the records to change, to one at a time."""
        directories.ensure_private(self._path.parent)
        with locks.hold_file(self._path.with_suffix(".lock")):
            records = dict(self.read())
            yield records
            document = {name: dataclasses.asdict(record) for name, record in records.items()}
            files.replace_file(self._path, orjson.dumps(document, option=orjson.OPT_INDENT_2))


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
