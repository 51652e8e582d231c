"""The address that this machine has on its way to a cluster."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.site import write_site

from stackyard.path import own_address
from stackyard.path.hypervisor import HypervisorSource
from stackyard.path.own_address import find_operator
from stackyard.path.target import Resolved
from stackyard.sources.site import ConfigResolver


def _resolved(folder: Path, host: str) -> Resolved:
    files = {
        "site.yaml": "{}\n",
        "nodes/pve1.yaml": f"api_endpoint: https://{host}:8006\ndatastore: local\n",
        "secrets.yaml": "api_tokens: {pve1: a@pve!b=cdef}\n",
    }
    found = HypervisorSource(ConfigResolver(write_site(folder, files))).resolve("pve1", None)
    return replace(found, ssh=None)


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
async def test_behind_a_tunnel_a_node_sees_another_address_than_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    resolved = _resolved(tmp_path, host)
    monkeypatch.setattr(own_address, "_CLUSTER_FILES", tmp_path / "pve")
    assert (await find_operator(resolved)).api == ""
    # On the node itself it is the one that it sees.
    (tmp_path / "pve").mkdir()
    assert (await find_operator(resolved)).api == host.strip("[]")
