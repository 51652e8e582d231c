"""A machine that says what it is called does not choose where a file of the site is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from stackyard.sources.site.edit import NotWrittenError, merge_host, merge_node

FIELDS = {"api_endpoint": "https://192.0.2.1:8006", "datastore": "local-lvm"}


@pytest.mark.parametrize("name", ["../evil", "/tmp/evil", "..", "", "a/b", "a\n", "{{ x }}", "-x", "a" * 200])
def test_a_name_that_is_no_name_is_refused(tmp_path: Path, name: str) -> None:
    root = tmp_path / "site"
    (root / "nodes").mkdir(parents=True)
    for merge in (merge_node, merge_host):
        with pytest.raises(NotWrittenError, match="cannot be the name of a machine"):
            merge(root, name, FIELDS, overwrites=True)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_name_is_a_file(tmp_path: Path) -> None:
    assert merge_node(tmp_path, "pve1.example", FIELDS, overwrites=False).path.parent == tmp_path / "nodes"
