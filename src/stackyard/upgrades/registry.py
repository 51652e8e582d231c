"""Registries of providers and modules, as both engines ask them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from yarl import URL

from stackyard.upgrades.fetch import SourceError
from stackyard.upgrades.versions import parse_versions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.engine.version import Version
    from stackyard.upgrades.addresses import ModuleAddress, ProviderAddress
    from stackyard.upgrades.cli_config import CliConfig
    from stackyard.upgrades.fetch import Fetcher

__all__ = ["Registry"]

_PROVIDERS, _MODULES = "providers.v1", "modules.v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Registry:
    """The registry that each address names.

    Attributes:
        fetcher: Asks it.
        config: Tokens, and addresses of services that are not asked for.
    """

    fetcher: Fetcher
    config: CliConfig

    @property
    def lock_arguments(self) -> tuple[str, ...]:
        """What makes the engine lock from here."""
        return ()

    def title(self, address: ProviderAddress | ModuleAddress) -> str:
        """Return what to call it."""
        return f"registry {address.host}"

    async def versions(self, address: ProviderAddress) -> tuple[Version, ...]:
        """Return the versions of a provider.

        Raises:
            SourceError: The registry cannot say.
        """
        return parse_versions(one.get("version") for one in await self._rows(address))

    async def platforms(self, address: ProviderAddress, version: Version) -> frozenset[str]:
        """Return the platforms that a version is there for.

        Raises:
            SourceError: The registry cannot say.
        """
        found: set[str] = set()
        for row in await self._rows(address):
            if parse_versions([row.get("version")]) == (version,):
                found |= {f"{one.get('os')}_{one.get('arch')}" for one in _dicts(row.get("platforms"))}
        return frozenset(found)

    async def module_versions(self, address: ModuleAddress) -> tuple[Version, ...]:
        """Return the versions of a module.

        Raises:
            SourceError: The registry cannot say, or has no such module.
        """
        base = await self._service(address.host, _MODULES)
        answer = await self._get(address.host, base / "/".join(address[1:]) / "versions")
        modules = list(_dicts(answer.get("modules"))) if isinstance(answer, dict) else []
        if not modules:
            raise SourceError(f"{address.host} has no module {'/'.join(address[1:])}")
        return parse_versions(one.get("version") for one in _dicts(modules[0].get("versions")))

    async def _rows(self, address: ProviderAddress) -> list[dict[str, Any]]:
        base = await self._service(address.host, _PROVIDERS)
        answer = await self._get(address.host, base / address.namespace / address.type / "versions")
        if answer is None:
            raise SourceError(f"{address.host} has no provider {address.namespace}/{address.type}")
        return list(_dicts(answer.get("versions"))) if isinstance(answer, dict) else []

    async def _service(self, host: str, name: str) -> URL:
        """Return the address of a service of a host, from the settings or from the host itself."""
        start = URL(f"https://{host}/.well-known/terraform.json")
        if host in self.config.services:
            services: Any = self.config.services[host]
        else:
            services = await self._get(host, start)
        said = services.get(name) if isinstance(services, dict) else None
        if not isinstance(said, str):
            raise SourceError(f"{host} is no registry of {name.partition('.')[0]}")
        try:
            return start.join(URL(said))
        except ValueError as err:
            raise SourceError(f"{host} names an address that is not valid") from err

    async def _get(self, host: str, url: URL) -> Any:
        # As the engine does, for the services too that the host itself, or the user, names for it.
        token = self.config.tokens.get(host)
        return await self.fetcher.get_json(url, authorization=f"Bearer {token}" if token else None)


def _dicts(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, list):
        yield from (one for one in value if isinstance(one, dict))
