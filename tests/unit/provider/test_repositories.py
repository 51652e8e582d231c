"""Package repositories as Proxmox lists them: the ids, files and places that bpg gives them."""

from __future__ import annotations

from typing import Any

import pytest

from stackyard.provider.problems import ImportIdError
from stackyard.provider.resources.node_settings import apt_repository, apt_standard_repository
from stackyard.provider.resources.node_settings.repositories import (
    is_standard,
    repository_values,
    standard_values,
)

ROW = {"Types": ["deb"], "Suites": ["s"], "Enabled": 0, "FileType": "list", "Comment": "old\n"}
FOUND: dict[str, Any] = {
    "files": [
        {
            "path": "/etc/apt/sources.list",
            "repositories": [
                {**ROW, "URIs": ["http://deb.example.com"], "Components": ["main"]},
                {**ROW, "URIs": ["http://pve.example.com"], "Components": ["pvetest"]},
            ],
        }
    ],
    "standard-repos": [
        {"handle": "test", "name": "Test", "status": 0},
        {"handle": "ceph-reef-test", "name": "Reef"},
    ],
}


def test_a_repository_is_named_after_its_place() -> None:
    state = {"node": "PVE-10", "file_path": "/etc/apt/sources.list", "index": 0}
    found = repository_values(state, FOUND)
    assert found["id"] == "apt_repository_pve-10_etc_apt_sources_list_0"
    assert (found["comment"], found["enabled"], found["components"]) == ("old", False, ["main"])
    assert repository_values({**state, "index": 9}, FOUND)["uris"] is None


def test_a_standard_repository_of_an_older_version_is_found() -> None:
    found = standard_values({"node": "pve1", "handle": "test"}, FOUND)
    assert (found["index"], found["file_path"], found["status"]) == (1, "/etc/apt/sources.list", 0)


def test_a_standard_repository_without_a_status_is_gone() -> None:
    assert is_standard({"node": "pve1", "handle": "test"}, FOUND)
    assert not is_standard({"node": "pve1", "handle": "ceph-reef-test"}, FOUND)


@pytest.mark.parametrize("given", ["pve1", "pve1,file,0", "pve1,/file,x"])
def test_an_id_of_no_repository_is_refused(given: str) -> None:
    with pytest.raises(ImportIdError):
        apt_repository.RESOURCE.identify(given)


@pytest.mark.parametrize("given", ["pve1", ",test", "pve1,test,0"])
def test_an_id_of_no_standard_repository_is_refused(given: str) -> None:
    with pytest.raises(ImportIdError):
        apt_standard_repository.RESOURCE.identify(given)
