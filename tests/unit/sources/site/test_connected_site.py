"""Adding nodes to a site: what a server says is data, and a failure leaves every file as it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from stackyard.base.errors import InvalidInputError
from stackyard.sources.site.connected_site import ConnectedNode, SiteConflictError, plan_site, write_site
from stackyard.sources.site.edit import NotWrittenError
from stackyard.sources.site.load import Site

PIN = ":".join(["AB"] * 32)
TOKEN = "stackyard@pve!connect=11111111-2222-3333-4444-555555555555"


def node(name: str = "pve", *, alias: str | None = None, **changes: Any) -> ConnectedNode:
    fields = {
        "api_endpoint": "https://pve.home:8006",
        "api_token": "",
        "api_fingerprint": PIN,
        "datastore": "local-lvm",
        **changes,
    }
    return ConnectedNode(name=name, alias=alias, fields=fields, comments={"datastore": "Disks."})


def files(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_a_new_site_is_valid_and_its_token_is_sealed(tmp_path: Path) -> None:
    root = tmp_path / "yard"
    plan = plan_site(root, [node()], cluster="home", bridge="vmbr7")
    assert not root.exists()
    written = write_site(plan, TOKEN)
    site = Site.load(root)
    assert site.secret_values.api_tokens == {"home": TOKEN}
    assert site.settings.defaults.bridge == "vmbr7"
    assert site.envs["first"].model.node == "pve"
    assert TOKEN.partition("=")[2].encode() not in b"".join(files(root).values())
    assert {"site.yaml", ".sops.yaml", "secrets.yaml", "nodes/pve.yaml"} <= set(written.files)


def test_what_a_server_says_in_a_comment_stays_a_comment(tmp_path: Path) -> None:
    hostile = ConnectedNode(
        name="pve",
        fields=node().fields,
        comments={"datastore": "a\nssh_user: evil\rip: 6.6.6.6\u2028x: 1\x1b[2J"},
    )
    plan = plan_site(tmp_path, [hostile], cluster="home")
    write_site(plan, TOKEN)
    text = (tmp_path / "nodes/pve.yaml").read_text()
    assert set(yaml.safe_load(text)) == set(node().fields)
    assert "\x1b" not in text


@pytest.mark.parametrize("name", ["../evil", "a/b", ".hidden", "", "x" * 200])
def test_a_node_cannot_name_a_file_elsewhere(tmp_path: Path, name: str) -> None:
    with pytest.raises(NotWrittenError):
        plan_site(tmp_path, [node(name)], cluster="home")


def test_a_failure_while_writing_leaves_every_file_as_it_was(tmp_path: Path) -> None:
    write_site(plan_site(tmp_path, [node()], cluster="home"), TOKEN)
    before = files(tmp_path)
    plan = plan_site(tmp_path, [node("pve2", ip="10.0.0.2"), node("pve3")], cluster="home")
    (tmp_path / "nodes" / "pve3.yaml").mkdir()
    with pytest.raises(InvalidInputError):
        write_site(plan, TOKEN.replace("1111", "9999"))
    assert files(tmp_path) == before


def test_a_failure_leaves_no_new_site_behind(tmp_path: Path) -> None:
    plan = plan_site(tmp_path, [node()], cluster="home")
    (tmp_path / "presets").write_text("in the way")
    with pytest.raises(InvalidInputError):
        write_site(plan, TOKEN)
    assert set(files(tmp_path)) == {"presets"}


def test_the_same_server_under_another_name_is_no_conflict(tmp_path: Path) -> None:
    write_site(plan_site(tmp_path, [node()], cluster="home"), TOKEN)
    plan = plan_site(tmp_path, [node(api_endpoint="https://10.0.0.1:8006")], cluster="other")
    assert (plan.token_key, plan.known_token, dict(plan.texts)) == ("home", TOKEN, {})
    assert plan.edited[0].kept == ("api_endpoint",)


def test_another_certificate_is_a_conflict_unless_it_is_overwritten(tmp_path: Path) -> None:
    write_site(plan_site(tmp_path, [node()], cluster="home"), TOKEN)
    other = node(api_fingerprint=PIN.replace("AB", "CD"))
    with pytest.raises(SiteConflictError) as refused:
        plan_site(tmp_path, [other], cluster="home")
    assert "api_fingerprint" in refused.value.diagnostics[0].detail
    plan = plan_site(tmp_path, [other], cluster="home", overwrites=True)
    write_site(plan, None)
    text = (tmp_path / "nodes/pve.yaml").read_text()
    assert "CD:CD" in text
    assert "# Disks." in text
