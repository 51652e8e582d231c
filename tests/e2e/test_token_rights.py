"""The token that a run uses keeps its rights, and one login lets it work again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.lab import proxmoxer_client
from tests.support.path import Yard, provider_settings
from tests.support.token_site import TARGET, make_token_yard, write_cluster

from stackyard import lab

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

USER, CALLER = "terraform@pve", "terraform@pve!provider"
PRIVILEGES = [
    "Permissions.Modify",
    "Realm.AllocateUser",
    "Sys.Audit",
    "Sys.Modify",
    "User.Modify",
    "VM.Audit",
]
OVER = "2020-01-01T00:00:00Z"


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    """A site whose node uses a token of the file of its cluster."""
    env = provider_settings("builtin", tmp_path)
    with lab.running(nodes=("pve1",), data=tmp_path / "lab") as running:
        yield make_token_yard(running, tmp_path / "site", **env)


def write(yard: Yard, *entries: dict[str, Any], other: dict[str, Any] | None = None, **token: Any) -> None:
    """Write the cluster: the settings of the token in use, and further entries of the access list."""
    settings = {"privileges_separation": False, "store": "pve", **token}
    tokens = {CALLER: settings} | ({} if other is None else {f"{USER}!edge": {"store": "edge", **other}})
    roles = {"Terraform": PRIVILEGES}
    acl = [{"path": "/", "user_id": USER, "role_id": "Terraform"}, *entries]
    write_cluster(yard, {"api": "pve", "roles": roles, "users": {USER: {}}, "tokens": tokens, "acl": acl})


def entry(role: str, path: str = "/", token: str = CALLER) -> dict[str, Any]:
    """Return an entry of the access list."""
    return {"path": path, "token_id": token, "role_id": role}


def test_no_plan_takes_rights_from_the_token_in_use_and_narrowing_it_gives_its_role_first(yard: Yard) -> None:
    write(yard)
    login = ("--login", "root@pam")
    yard.run("apply", TARGET, *login)
    refused: tuple[tuple[tuple[dict[str, Any], ...], dict[str, Any]], ...] = (
        ((), {"expiration_date": OVER}),
        ((), {"privileges_separation": True}),
        ((entry("PVEAuditor"),), {"privileges_separation": True}),
    )
    for entries, settings in refused:
        write(yard, *entries, **settings)
        assert yard.codes("apply", TARGET) == ["E-GUARD-OWN-RIGHTS"], settings

    # Narrowed to the role that it has anyway, the token loses nothing at any moment.
    write(yard, entry("Terraform"), privileges_separation=True)
    yard.run("apply", TARGET)
    assert yard.json("plan", TARGET)["has_changes"] is False

    for entries in ((), (entry("Terraform"), entry("NoAccess", "/access"))):
        write(yard, *entries, privileges_separation=True)
        assert yard.codes("apply", TARGET) == ["E-GUARD-OWN-RIGHTS"], entries

    # A role that another one replaces goes last.
    write(yard, entry("Administrator"), privileges_separation=True)
    yard.run("apply", TARGET)
    held = {(row["ugid"], row["roleid"]) for row in proxmoxer_client(yard.running).access.acl.get()}
    assert held == {(USER, "Terraform"), (CALLER, "Administrator")}
    assert yard.json("plan", TARGET)["has_changes"] is False


def test_a_login_lets_a_token_work_again_that_ended_or_was_narrowed(yard: Yard) -> None:
    write(yard)
    login = ("--login", "root@pam")
    yard.run("apply", TARGET, *login)
    token = proxmoxer_client(yard.running).access.users(USER).token("provider")
    secret = (yard.folder / "secrets.yaml").read_text()
    for change in ({"expire": 1_500_000_000}, {"privsep": 1}):
        token.put(**change)
        yard.run("plan", TARGET, status=None)
        yard.run("apply", TARGET, *login)
        assert yard.json("plan", TARGET)["has_changes"] is False
    assert (yard.folder / "secrets.yaml").read_text() == secret
    write(yard, expiration_date=OVER)
    assert yard.json("apply", TARGET, *login, status=65)["error"]["code"] == "E-TOKEN-ENDED"


def test_a_token_of_another_node_neither_ends_nor_loses_everything(yard: Yard) -> None:
    edge = f"{USER}!edge"
    write(yard, other={"privileges_separation": False})
    yard.run("apply", TARGET, "--login", "root@pam")
    text = (yard.folder / "nodes" / "pve.yaml").read_text()
    assert "api_token: pve" in text
    (yard.folder / "nodes" / "pve2.yaml").write_text(text.replace("api_token: pve", "api_token: edge"))
    for settings in (
        {"privileges_separation": True},
        {"privileges_separation": False, "expiration_date": OVER},
    ):
        write(yard, other=settings)
        assert yard.codes("apply", TARGET) == ["E-GUARD-NODE-TOKEN"], settings
    write(yard, entry("PVEAuditor", token=edge), other={"privileges_separation": True})
    warnings = yard.json("apply", TARGET)["guard"]["warnings"]
    assert [one["code"] for one in warnings] == ["W-GUARD-NODE-TOKEN"]
    assert "pve2" in warnings[0]["detail"]
