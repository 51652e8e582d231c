"""Running scenarios in tests: on a machine that is given, with a site that is written."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from tests.support.ssh_hosts import ScriptedHost, scripted

from stackyard.base import events
from stackyard.clients import ssh
from stackyard.scenario.catalogue import find_scenario
from stackyard.scenario.context import Context
from stackyard.scenario.machines import Machine, Remote
from stackyard.scenario.options import ScenarioOptions
from stackyard.scenario.outcome import ScenarioOutcome
from stackyard.scenario.run import run_scenario
from stackyard.sources.site.load import Site

__all__ = ["run_on", "run_scripted", "site_of"]


def site_of(folder: Path, files: Mapping[str, str]) -> Site:
    """Write a site and read it."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Site.load(folder)


async def run_on(
    machine: Machine,
    name: str,
    *,
    site: Site | None = None,
    options: ScenarioOptions | None = None,
    seen: list[events.Event] | None = None,
) -> ScenarioOutcome:
    """Run a scenario on a machine, and let go of that."""
    context = Context(
        machine=machine,
        options=options or ScenarioOptions(),
        site=site,
        emit=events.ignore if seen is None else seen.append,
    )
    try:
        return await run_scenario(find_scenario(name), context)
    finally:
        await machine.close()


def run_scripted(
    machine: ScriptedHost,
    name: str,
    folder: Path,
    *,
    site: Site | None = None,
    options: ScenarioOptions | None = None,
    seen: list[events.Event] | None = None,
) -> ScenarioOutcome:
    """Run a scenario on a scripted machine."""

    async def go() -> ScenarioOutcome:
        async with scripted(machine, folder) as host:
            remote = Remote(_as(host, "admin"))
            if site is not None:
                remote.redactor = site.redactor()
            return await run_on(remote, name, site=site, options=options, seen=seen)

    return asyncio.run(go())


def _as(host: ssh.Host, user: str) -> ssh.Host:
    return ssh.Host(address=host.address, port=host.port, known_hosts=host.known_hosts, username=user)
