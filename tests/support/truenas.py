"""A TrueNAS for tests: the double of the lab, in any of its releases."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

from tests.support.lab import lab_client

from pvelab.truenas.datasets import Datasets
from pvelab.truenas.login import USER, make_api_key
from pvelab.truenas.service import Release, serve_truenas
from pvelab.world.world import World
from stackyard.base.serving import Certificate, make_certificate
from stackyard.clients.truenas import TrueNasEndpoint
from stackyard.lab import Running

__all__ = ["TrueNas", "run_truenas"]


@dataclass(frozen=True)
class TrueNas:
    """A TrueNAS that answers."""

    url: str
    api_key: str
    certificate: Certificate
    lab: Running
    release: Release

    @property
    def world(self) -> World:
        return self.lab.world

    @property
    def datasets(self) -> Datasets:
        """What it has inside."""
        return Datasets(self.world)

    def endpoint(self, **changes: str) -> TrueNasEndpoint:
        user = USER if self.release is Release.LOGIN_EX else ""
        whole = TrueNasEndpoint(
            user=user, url=self.url, api_key=self.api_key, fingerprint=self.certificate.fingerprint
        )
        return replace(whole, **changes)


@contextlib.asynccontextmanager
async def run_truenas(release: Release = Release.BOTH) -> AsyncIterator[TrueNas]:
    async with lab_client() as api:
        key, certificate = make_api_key(api.running.api_token), make_certificate(["localhost", "127.0.0.1"])
        async with serve_truenas(api.world, certificate, key, release=release) as url:
            yield TrueNas(url=url, api_key=key, certificate=certificate, lab=api.running, release=release)
