"""The checksums of a provider's packages for every platform, as the engine computes them.

A version is locked once, in a folder of its own, however many stacks use it: an engine downloads the packages
of all platforms for that.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from stackyard.base.errors import StackyardError
from stackyard.base.redaction import NOTHING_SECRET
from stackyard.engine import invoke, tofu
from stackyard.engine.workdir import Limits, Workdir
from stackyard.path.stacks.environment import engine_environment, find_cli_config, secret_values
from stackyard.sources.stacks.kinds import LOCK_FILE
from stackyard.sources.stacks.lock_file import LockEntry, read_lock, replace_entries
from stackyard.upgrades.fetch import SourceError
from stackyard.upgrades.oci import OciMirror

if TYPE_CHECKING:
    from stackyard.engine.version import Engine, Version
    from stackyard.upgrades.addresses import ProviderAddress
    from stackyard.upgrades.sources import Offer, ProviderSource

__all__ = ["PLATFORMS", "Locker", "StackUpgradeError", "make_workdir"]

# What people run engines on; a provider is locked for those of them that it is there for.
PLATFORMS = (
    "linux_amd64",
    "linux_arm64",
    "darwin_amd64",
    "darwin_arm64",
    "windows_amd64",
    "windows_arm64",
)
_LIMITS = Limits(work_s=1800.0)


class StackUpgradeError(StackyardError):
    """New versions cannot be written into the code and the lock file of a stack; both are as they were."""

    code = "E-STACK-UPGRADE"
    summary = "The stack cannot be upgraded"
    default_remedy = "Correct the cause and run the command again; the files of the stack are as they were."


def make_workdir(engine: Engine, folder: Path, data_dir: Path) -> Workdir:
    """Return how an engine runs in a folder with the user's settings file and environment."""
    environment = engine_environment()
    return Workdir(
        engine=engine,
        folder=folder,
        environment=environment,
        redactor=NOTHING_SECRET.with_secrets(secret_values(environment, folder)),
        data_dir=data_dir,
        cli_config=find_cli_config(),
        limits=_LIMITS,
    )


@dataclass(slots=True)
class Locker:
    """Locks versions of providers, each once.

    Attributes:
        platforms: For which platforms.
    """

    platforms: tuple[str, ...] = PLATFORMS
    _turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(4))
    _known: dict[object, asyncio.Task[tuple[str, ...]]] = field(default_factory=dict)

    async def hashes(
        self, engine: Engine, address: ProviderAddress, version: Version, offer: Offer
    ) -> tuple[str, ...]:
        """Return the checksums of a version.

        Raises:
            StackUpgradeError: The source of the version does not have it for any platform.
            TofuError: The engine cannot lock it.
        """
        key = (engine.flavour, address, version)
        if key not in self._known:
            self._known[key] = asyncio.ensure_future(self._lock(engine, address, version, offer))
        return await asyncio.shield(self._known[key])

    async def close(self) -> None:
        """End what is still being locked."""
        for task in self._known.values():
            task.cancel()
        await asyncio.gather(*self._known.values(), return_exceptions=True)

    async def _lock(
        self, engine: Engine, address: ProviderAddress, version: Version, offer: Offer
    ) -> tuple[str, ...]:
        source = offer.origin(version)
        if source is None:
            raise StackUpgradeError(f"{address} {version} is not in {offer.title}.")
        try:
            has = await source.platforms(address, version)
            wanted = tuple(one for one in self.platforms if one in has)
            if not wanted:
                asked = ", ".join(self.platforms)
                raise StackUpgradeError(
                    f"{source.title(address)} has {address} {version} for none of {asked}."
                )
            async with self._turns:
                return await _lock_in_folder(engine, address, version, source, wanted)
        except SourceError as err:
            raise StackUpgradeError(f"{address} {version} cannot be locked: {err}.") from err


async def _lock_in_folder(
    engine: Engine,
    address: ProviderAddress,
    version: Version,
    source: ProviderSource,
    platforms: tuple[str, ...],
) -> tuple[str, ...]:
    with tempfile.TemporaryDirectory(prefix="stackyard-lock-") as name:
        folder = Path(name)
        required = {"locked": {"source": str(address), "version": f"= {version}"}}
        code = {"terraform": {"required_providers": required}}
        (folder / "main.tf.json").write_text(json.dumps(code))
        workdir = make_workdir(engine, folder, folder / ".terraform")
        arguments = source.lock_arguments
        if arguments is not None:
            chosen = tuple(f"-platform={one}" for one in platforms)
            await invoke.run_silent(workdir, "providers lock", (*arguments, *chosen, str(address)))
        elif isinstance(source, OciMirror):
            # The engine locks from such a registry only what it installs: the package for this machine, which
            # it compares with these checksums. Those of the others are the digests that the registry has.
            found = await source.digests(address, version)
            known = tuple(f"zh:{found[one]}" for one in platforms if one in found)
            entry = LockEntry(version=version, hashes=known)
            (folder / LOCK_FILE).write_bytes(replace_entries(None, {str(address): entry}))
            await tofu.init(workdir)
        locked = read_lock((folder / LOCK_FILE).read_bytes()).get(str(address))
        if locked is None or locked.version != version or not locked.hashes:
            raise StackUpgradeError(f"{engine.flavour.label} did not lock {address} {version}.")
        return locked.hashes
