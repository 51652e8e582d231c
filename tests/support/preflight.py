"""Hosts to look at: a lab with a site, and tokens that may do less than everything."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.support.lab import proxmoxer_client
from tests.support.path import Yard, make_yard

from stackyard import lab
from stackyard.operator.preflight import PreflightReport, Purpose, inspect, subject_of
from stackyard.sources.manifest.read import ManifestRequest, find_manifest
from stackyard.sources.site import ConfigResolver

__all__ = ["codes", "details", "look", "with_role"]


def look(
    site: Path,
    manifest: str | None = None,
    *,
    host: str = "lab",
    text: str | None = None,
    purpose: Purpose = Purpose.CREATE,
) -> PreflightReport:
    """Look at a host of a site."""
    resolver = ConfigResolver(site)
    wanted = ManifestRequest(name=manifest, text=text)
    found = find_manifest(resolver.site, wanted) if manifest or text else None
    return asyncio.run(inspect(subject_of(resolver, host, found, purpose=purpose)))


def codes(report: PreflightReport) -> list[str]:
    """Return the codes of all findings."""
    return [finding.kind.code for finding in report.findings]


def details(report: PreflightReport, code: str) -> list[str]:
    """Return what the findings of a code say."""
    return [finding.detail for finding in report.findings if finding.kind.code == code]


def with_role(
    running: lab.Running, folder: Path, grants: Mapping[str, Iterable[str]], *, name: str = "ops"
) -> Yard:
    """Make a site for a lab whose token has these privileges on these paths, and no others."""
    api: Any = proxmoxer_client(running)
    user = f"{name}@pve"
    api.access.users.post(userid=user)
    token = api.access.users(user).token("ci").post()
    for number, (path, privileges) in enumerate(sorted(grants.items())):
        role = f"{name}-{number}"
        api.access.roles.post(roleid=role, privs=",".join(sorted(privileges)))
        api.access.acl.put(path=path, roles=role, users=user)
        api.access.acl.put(path=path, roles=role, tokens=token["full-tokenid"])
    weaker = dataclasses.replace(running, api_token=f"{token['full-tokenid']}={token['value']}")
    return make_yard(weaker, folder)
