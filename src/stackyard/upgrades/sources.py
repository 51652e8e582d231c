"""Which versions there are: from the registries and mirrors that the engine would use itself."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from stackyard.engine.version import Flavour
from stackyard.upgrades.addresses import DEFAULT_HOSTS, ProviderAddress
from stackyard.upgrades.cli_config import Method
from stackyard.upgrades.fetch import SourceError
from stackyard.upgrades.mirrors import FilesystemMirror, NetworkMirror
from stackyard.upgrades.oci import OciMirror, OciRegistry, parse_oci_source
from stackyard.upgrades.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.engine.version import Version
    from stackyard.upgrades.addresses import ModuleAddress
    from stackyard.upgrades.cli_config import CliConfig
    from stackyard.upgrades.fetch import Fetcher

__all__ = ["Offer", "ProviderSource", "Sources"]


class ProviderSource(Protocol):
    """Where a provider can be installed from."""

    @property
    def lock_arguments(self) -> tuple[str, ...] | None:
        """What makes `providers lock` use it; None where the engine has nothing for it."""

    def title(self, address: ProviderAddress, /) -> str:
        """Return what to call it."""

    async def versions(self, address: ProviderAddress, /) -> tuple[Version, ...]:
        """Return the versions that it has."""

    async def platforms(self, address: ProviderAddress, version: Version, /) -> frozenset[str]:
        """Return the platforms that a version is there for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """The versions of a provider or module.

    Attributes:
        versions: All of them, sorted.
        title: Where they are.
        origins: For a provider, where each version can be installed from.
    """

    versions: tuple[Version, ...]
    title: str
    origins: tuple[tuple[ProviderSource, frozenset[Version]], ...] = ()

    def origin(self, version: Version) -> ProviderSource | None:
        """Return where a version can be installed from."""
        return next((source for source, has in self.origins if version in has), None)


@dataclass(slots=True)
class Sources:
    """Asks for the versions of providers and modules, each once.

    Attributes:
        fetcher: Asks servers.
        config: The settings file of the engine.
        flavour: The engine.
    """

    fetcher: Fetcher
    config: CliConfig
    flavour: Flavour = Flavour.TOFU
    _asked: dict[object, asyncio.Task[Offer]] = field(default_factory=dict)

    @property
    def default_host(self) -> str:
        """The host of addresses that name none."""
        return DEFAULT_HOSTS[self.flavour]

    async def provider(self, address: ProviderAddress) -> Offer:
        """Return the versions of a provider.

        Raises:
            SourceError: They are not known.
        """
        if address not in self._asked:
            self._asked[address] = asyncio.ensure_future(self._provider(address))
        return await asyncio.shield(self._asked[address])

    async def module(self, address: ModuleAddress) -> Offer:
        """Return the versions of a module of a registry.

        Raises:
            SourceError: They are not known.
        """
        registry = Registry(fetcher=self.fetcher, config=self.config)
        return Offer(versions=await registry.module_versions(address), title=registry.title(address))

    async def oci_module(self, source: str) -> Offer:
        """Return the versions of a module of an OCI registry.

        Raises:
            SourceError: They are not known.
        """
        repository = parse_oci_source(source)
        if repository is None:
            raise SourceError("this is no OCI registry")
        registry = OciRegistry(fetcher=self.fetcher, config=self.config)
        return Offer(versions=await registry.versions(repository), title=f"OCI registry {repository}")

    async def _provider(self, address: ProviderAddress) -> Offer:
        override = next(
            (one for one in self.config.overrides if one.lower() in (str(address), address.short)), None
        )
        if override is not None:
            raise SourceError("the settings file of the engine overrides it for development")
        sources = list(self._sources(address))
        if not sources:
            raise SourceError("no installation method of the settings file is for it")
        found = await asyncio.gather(*(one.versions(address) for one in sources))
        origins = tuple((source, frozenset(has)) for source, has in zip(sources, found, strict=True))
        titles = [source.title(address) for source, has in origins if has]
        if not titles:
            raise SourceError(f"no version is in {', '.join(one.title(address) for one in sources)}")
        versions = tuple(sorted({version for has in found for version in has}))
        return Offer(versions=versions, title=", ".join(titles), origins=origins)

    def _sources(self, address: ProviderAddress) -> Iterator[ProviderSource]:
        for method in self._methods(address):
            if not method.serves(address, self.default_host):
                continue
            if method.kind == "direct":
                yield Registry(fetcher=self.fetcher, config=self.config)
            elif method.kind == "filesystem_mirror":
                yield FilesystemMirror(folder=Path(method.place))
            elif method.kind == "network_mirror":
                yield NetworkMirror(fetcher=self.fetcher, url=method.place, config=self.config)
            else:
                registry = OciRegistry(fetcher=self.fetcher, config=self.config)
                yield OciMirror(registry=registry, template=method.place)

    def _methods(self, address: ProviderAddress) -> tuple[Method, ...]:
        if self.config.methods is not None:
            return self.config.methods
        # Without a word in the settings, a provider in one of these folders comes from there alone.
        implied = [one for one in self._implied() if FilesystemMirror(folder=one).has(address)]
        mirrors = tuple(Method(kind="filesystem_mirror", place=str(one)) for one in implied)
        return mirrors or (Method(kind="direct"),)

    def _implied(self) -> tuple[Path, ...]:
        home = Path.home()
        data = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share")
        name = "opentofu" if self.flavour is Flavour.TOFU else "terraform"
        shared = [
            Path(one) for one in (os.environ.get("XDG_DATA_DIRS") or "/usr/local/share:/usr/share").split(":")
        ]
        return (home / ".terraform.d" / "plugins", *(one / name / "plugins" for one in (data, *shared)))
