"""Writing an upgrade: code and lock files of stacks that belong together, all of them or none."""

from __future__ import annotations

import asyncio
import os
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stackyard.base import events, files
from stackyard.base.documents.byte_edits import apply_edits
from stackyard.base.documents.constraints import Constraint, ConstraintError, parse_constraint
from stackyard.base.documents.jsontext import parse_json
from stackyard.base.errors import FileError, StackyardError
from stackyard.engine import invoke
from stackyard.sources.stacks.kinds import LOCK_FILE, is_code
from stackyard.sources.stacks.lock_file import LockEntry, describe_constraints, is_whole, replace_entries
from stackyard.upgrades.addresses import DEFAULT_HOSTS, ProviderAddress, parse_provider
from stackyard.upgrades.declarations import DeclarationKind, read_declarations
from stackyard.upgrades.locking import StackUpgradeError, make_workdir
from stackyard.upgrades.plan_writes import name_stacks
from stackyard.upgrades.requirements import list_requirements

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.base.documents.byte_edits import Edit
    from stackyard.engine.version import Engine
    from stackyard.sources.stacks.model import Stack
    from stackyard.sources.stacks.repository import StackRepository
    from stackyard.upgrades.locking import Locker
    from stackyard.upgrades.plan_writes import Upgrade, WriteUnit
    from stackyard.upgrades.requirements import Place, Requirement

__all__ = ["Outcome", "write_units"]

_FILE_MODE = 0o644


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a unit.

    Attributes:
        unit: The stacks and what they get.
        error: Why its files are as they were; None where they were written.
    """

    unit: WriteUnit
    error: StackyardError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """A constraint of a module that is not in the repository."""

    address: ProviderAddress
    constraint: Constraint
    where: str


async def write_units(
    units: tuple[WriteUnit, ...],
    repository: StackRepository,
    engines: Mapping[str, Engine],
    locker: Locker,
    *,
    parallel: int,
    emit: events.Emit = events.ignore,
) -> tuple[Outcome, ...]:
    """Write every unit; one that fails is put back as it was, and the others are written.

    Args:
        units: What to write.
        repository: The stacks.
        engines: By the name of a stack, its engine.
        locker: Locks providers.
        parallel: How many units at once.
        emit: Takes the events.
    """
    turns = asyncio.Semaphore(parallel)

    async def write(unit: WriteUnit) -> Outcome:
        names = name_stacks(unit.stacks)
        async with turns:
            try:
                with events.step(emit, f"upgrade {names}", f"Upgrading {names}"):
                    await _Writer(repository, engines, locker).write(unit)
            except StackyardError as err:
                return Outcome(unit=unit, error=err)
            return Outcome(unit=unit)

    try:
        return tuple(await asyncio.gather(*(write(one) for one in units)))
    finally:
        await locker.close()


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes one unit."""

    repository: StackRepository
    engines: Mapping[str, Engine]
    locker: Locker

    async def write(self, unit: WriteUnit) -> None:
        edited = {path: _edit(path, edits) for path, edits in unit.edits.items()}
        locks = {name: self.repository.stacks[name].folder / LOCK_FILE for name in unit.stacks}
        before = {path: _read(path) for path in (*edited, *locks.values())}
        await self.fetch_hashes(unit)
        try:
            if any(self.calls_remote(name) for name in unit.stacks):
                # The engine gets those modules in the version that the code names.
                _write_all(edited)
            made = {}
            for name in unit.stacks:
                upgrades = [one for one in unit.upgrades if one.row.stack == name]
                lock = await self.make_lock(
                    self.repository.stacks[name], upgrades, before[locks[name]], edited
                )
                if lock is not None:
                    made[locks[name]] = lock
            # The lock files first: until the code follows, its constraints still allow a version of the same
            # major one. Whoever is killed in between finishes by the same command.
            _write_all(made | edited)
        except BaseException:
            # Whatever ended it, an interrupt too: half of an upgrade is none.
            for path, old in before.items():
                _restore(path, old)
            raise

    async def fetch_hashes(self, unit: WriteUnit) -> None:
        """Do what takes long, the download of packages, before anything is written."""
        for one in unit.upgrades:
            address, offer = one.row.requirement.address, one.row.offer
            if isinstance(address, ProviderAddress) and offer is not None:
                await self.locker.hashes(self.engines[one.row.stack], address, one.target, offer)

    def calls_remote(self, name: str) -> bool:
        """Return whether a stack calls modules that are not in the repository."""
        stack = self.repository.stacks[name]
        return any(row.kind is DeclarationKind.MODULE for row in self.required(stack, self.engines[name]))

    async def make_lock(
        self, stack: Stack, upgrades: list[Upgrade], before: bytes | None, edited: Mapping[Path, bytes]
    ) -> bytes | None:
        """Return the new lock file, None where none of its providers changes."""
        if before is not None and not is_whole(before):
            raise StackUpgradeError(f"{stack.folder / LOCK_FILE} is not valid: OpenTofu cannot read it.")
        engine = self.engines[stack.name]
        called = await self.read_called_modules(stack, engine, upgrades)
        entries: dict[str, LockEntry] = {}
        for one in upgrades:
            address, offer = one.row.requirement.address, one.row.offer
            if not isinstance(address, ProviderAddress) or offer is None:
                continue
            constraints = [_raised(place, one, edited) for place in one.row.requirement.places]
            entries[str(address)] = LockEntry(
                version=one.target,
                constraints=describe_constraints(
                    [
                        *(c for c in constraints if c is not None),
                        *_require_allowed(called, address, one, engine),
                    ]
                ),
                hashes=await self.locker.hashes(engine, address, one.target, offer),
            )
        return replace_entries(before, entries) if entries else None

    async def read_called_modules(
        self, stack: Stack, engine: Engine, upgrades: list[Upgrade]
    ) -> tuple[_Found, ...]:
        """Let the engine get the modules that are not in the repository; return what they require.

        That they can be had at all in their new version is seen here too.
        """
        if not upgrades or not self.calls_remote(stack.name):
            return ()
        with tempfile.TemporaryDirectory(prefix="stackyard-modules-") as name:
            workdir = make_workdir(engine, stack.folder, Path(name))
            await invoke.run_silent(workdir, "get", ())
            return tuple(_read_modules(Path(name), stack.folder, engine))

    def required(self, stack: Stack, engine: Engine) -> tuple[Requirement, ...]:
        return list_requirements(self.repository, stack, engine.flavour)


def _raised(place: Place, upgrade: Upgrade, edited: Mapping[Path, bytes]) -> Constraint | None:
    """Return the constraint that the code will have."""
    data = edited.get(place.path) or _read(place.path) or b""
    for one in read_declarations(data, is_json=place.path.suffix == ".json"):
        same = (one.kind, one.name, one.source) == (
            place.declaration.kind,
            place.declaration.name,
            place.declaration.source,
        )
        if same and one.constraint is not None:
            found = parse_constraint(one.constraint)
            if not found.allows(upgrade.target):
                raise StackUpgradeError(f"{place.where} does not allow {upgrade.target}.")
            return found
    return None


def _read_modules(data_dir: Path, folder: Path, engine: Engine) -> Iterator[_Found]:
    """Return the constraints of the modules that an engine has put into its folder."""
    try:
        listed = parse_json((data_dir / "modules" / "modules.json").read_bytes())["Modules"]
        folders = {(folder / one["Dir"]).resolve() for one in listed if one.get("Key")}
    except (OSError, ValueError, KeyError, TypeError) as err:
        raise StackUpgradeError(f"{engine.flavour.label} did not say where it put the modules.") from err
    for inner in folders:
        if not inner.is_relative_to(data_dir.resolve()):
            continue
        for path in sorted(inner.iterdir()):
            if is_code(path.name):
                yield from _read_constraints(path, engine)


def _read_constraints(path: Path, engine: Engine) -> Iterator[_Found]:
    for one in read_declarations(_read(path) or b"", is_json=path.suffix == ".json"):
        if one.kind is not DeclarationKind.PROVIDER or one.constraint is None or one.source is None:
            continue
        address = parse_provider(one.source or one.name, DEFAULT_HOSTS[engine.flavour])
        try:
            if address is not None:
                yield _Found(
                    address=address,
                    constraint=parse_constraint(one.constraint),
                    where=f"{path.parent.name}/{path.name}:{one.line}",
                )
        except ConstraintError:
            continue


def _require_allowed(
    called: tuple[_Found, ...], address: ProviderAddress, upgrade: Upgrade, engine: Engine
) -> Iterator[Constraint]:
    for one in called:
        if one.address != address:
            continue
        if not one.constraint.allows(upgrade.target):
            raise StackUpgradeError(
                f"The module at {one.where} requires {address} `{one.constraint.text}`, which does not allow "
                f"{upgrade.target}; {engine.flavour.label} would refuse both together."
            )
        yield one.constraint


def _edit(path: Path, edits: tuple[Edit, ...]) -> bytes:
    try:
        return apply_edits(_read(path) or b"", edits)
    except ValueError as err:
        raise StackUpgradeError(f"{path} was changed while versions were looked up.") from err


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as err:
        raise FileError.from_os_error(err, "read", path) from err


def _write(path: Path, data: bytes) -> None:
    try:
        mode = stat.S_IMODE(os.stat(path).st_mode)
    except FileNotFoundError:
        mode = _FILE_MODE
    files.replace_file(path, data, mode=mode)


def _write_all(contents: Mapping[Path, bytes]) -> None:
    for path, data in contents.items():
        if _read(path) != data:
            _write(path, data)


def _restore(path: Path, old: bytes | None) -> None:
    if old is None:
        path.unlink(missing_ok=True)
    elif _read(path) != old:
        _write(path, old)
