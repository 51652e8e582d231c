"""The first token of a cluster: as its file says, or for stackyard itself; what was stopped is completed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.support.lab import proxmoxer_client

from stackyard import lab
from stackyard.base import events
from stackyard.base.errors import StackyardError
from stackyard.clients import proxmox
from stackyard.clients.proxmox.sign_in import log_in
from stackyard.desired import Desired
from stackyard.operator.connect.bootstrap import BootstrapRequest, NoRoleError, UserMissingError, bootstrap
from stackyard.operator.connect.failures import OtherTokenError, TokenExistsError
from stackyard.path.credentials.perform import LoginSession
from stackyard.path.credentials.record import CredentialRecord
from stackyard.path.run import RunSettings
from stackyard.path.target import Target
from stackyard.sources.hypervisor.build import build_desired
from stackyard.sources.hypervisor.models import cluster_model
from stackyard.sources.store import ChosenStore
from stackyard.state import StateService

TARGET = Target(kind="hypervisor", name="home", node="home")
TERRAFORM: dict[str, Any] = {
    "roles": {"Terraform": ["Sys.Audit", "VM.Audit"]},
    "users": {"terraform@pve": {"comment": "OpenTofu"}},
    "tokens": {"terraform@pve!provider": {"store": "home"}},
    "acl": [
        {"path": "/", "user_id": "terraform@pve", "role_id": "Terraform"},
        {"path": "/", "token_id": "terraform@pve!provider", "role_id": "Terraform"},
    ],
}


class StoppedError(Exception):
    """Stands for a kill."""


@dataclass
class Keeper:
    """Keeps tokens in memory; dies before or after it has kept one, if asked to."""

    kept: dict[str, str] = field(default_factory=dict)
    dies: str = ""

    def read(self) -> Mapping[str, str]:
        return dict(self.kept)

    def put(self, name: str, token: str) -> None:
        dies, self.dies = self.dies, ""
        if dies == "before":
            raise StoppedError
        self.kept[name] = token
        if dies == "after":
            raise StoppedError

    def remove(self, name: str, token_id: str) -> None:
        self.kept.pop(name, None)

    def require_safe(self) -> None:
        pass

    def list_users(self, name: str) -> tuple[str, ...]:
        return ()


@dataclass
class Cluster:
    """A lab, and a site that has no token for it."""

    running: lab.Running
    store: ChosenStore
    keeper: Keeper = field(default_factory=Keeper)

    async def bootstrap(self, document: dict[str, Any], *renewed: str) -> str | None:
        """Log in and make the token."""
        connection = proxmox.Connection(
            endpoint=self.running.url,
            credentials=proxmox.Ticket(ticket="", csrf_token=""),
            trust=proxmox.Trust(fingerprint=self.running.fingerprint),
        )
        login = proxmox.Login(username="root@pam", password=self.running.password)
        ticket = await log_in(connection, login)
        assert isinstance(ticket, proxmox.Ticket)
        desired = build_desired(cluster_model().model_validate(document)) if document else Desired()
        request = BootstrapRequest(
            target=TARGET,
            connection=connection,
            login=LoginSession(user="root@pam", password=login.password, ticket=ticket),
            desired=desired,
            store="home",
            renewed=frozenset(renewed),
            tokens=self.keeper,
        )
        return await bootstrap(request, RunSettings(store=self.store), events.ignore)

    def record(self) -> CredentialRecord:
        """Return what is written down."""
        with contextlib.closing(self.store.read()) as objects:
            return CredentialRecord.of(StateService(objects).targets.read(TARGET.state_name))

    def access(self) -> tuple[dict[str, list[str]], set[tuple[str, str, str]]]:
        """Return the tokens of each user, and who has which role."""
        api = proxmoxer_client(self.running)
        tokens = {
            row["userid"]: [one["tokenid"] for one in row.get("tokens") or ()]
            for row in api.access.users.get(full=1)
        }
        return tokens, {(row["path"], row["ugid"], row["roleid"]) for row in api.access.acl.get()}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with lab.running(nodes=("pve1",)) as running:
        yield Cluster(running, ChosenStore(base=tmp_path / ".stackyard"))


async def test_what_was_stopped_at_any_step_is_completed_and_nothing_is_made_twice(cluster: Cluster) -> None:
    for method, path in (
        ("POST", "/access/roles"),
        ("POST", "/access/users"),
        ("PUT", "/access/acl"),
        ("POST", "/access/users/*/token/*"),
    ):
        cluster.running.add_fault(
            "answer", method=method, path=path, status=500, reason="got bored", when="after", times=1
        )
        with pytest.raises(StackyardError):
            await cluster.bootstrap(TERRAFORM)
    for dies in ("before", "after"):
        cluster.keeper.dies = dies
        with pytest.raises(StoppedError):
            await cluster.bootstrap(TERRAFORM)
        assert not cluster.record().tokens["terraform@pve!provider"].is_complete
    await cluster.bootstrap(TERRAFORM)
    tokens, granted = cluster.access()
    assert tokens["terraform@pve"] == ["provider"]
    assert granted == {("/", who, "Terraform") for who in ("terraform@pve", "terraform@pve!provider")}
    record = cluster.record()
    assert record.tokens["terraform@pve!provider"].is_complete
    assert record.imports == {
        ("role", "Terraform"),
        ("user", "terraform@pve"),
        ("acl", "/?terraform@pve?Terraform"),
    }
    assert await cluster.bootstrap(TERRAFORM) is None


async def test_without_a_token_in_the_file_one_for_stackyard_is_made_that_no_plan_removes(
    cluster: Cluster,
) -> None:
    assert await cluster.bootstrap({}) == "stackyard@pve!hypervisor"
    tokens, granted = cluster.access()
    assert tokens["stackyard@pve"] == ["hypervisor"]
    assert granted == {
        ("/", who, "StackyardHypervisor") for who in ("stackyard@pve", "stackyard@pve!hypervisor")
    }
    record = cluster.record()
    assert (dict(record.tokens), record.grants, record.imports) == ({}, frozenset(), frozenset())
    assert await cluster.bootstrap({}) is None


async def test_a_token_of_somebody_else_is_replaced_only_by_name(cluster: Cluster) -> None:
    await cluster.bootstrap(TERRAFORM)
    cluster.keeper.kept.clear()
    with pytest.raises(TokenExistsError, match="not in the secrets"):
        await cluster.bootstrap(TERRAFORM)
    assert await cluster.bootstrap(TERRAFORM, "terraform@pve!provider") == "terraform@pve!provider"
    cluster.keeper.kept["home"] = "root@pam!other=x"
    with pytest.raises(OtherTokenError):
        await cluster.bootstrap(TERRAFORM)


@pytest.mark.parametrize(
    ("left_out", "error"), [("acl", NoRoleError), ("users", UserMissingError)], ids=["acl", "users"]
)
async def test_a_token_that_could_do_nothing_is_refused_before_anything_is_made(
    cluster: Cluster, left_out: str, error: type[StackyardError]
) -> None:
    before = cluster.access()
    with pytest.raises(error):
        await cluster.bootstrap({key: value for key, value in TERRAFORM.items() if key != left_out})
    assert cluster.access() == before


async def test_a_secret_that_is_of_another_cluster_is_not_overwritten(cluster: Cluster) -> None:
    cluster.keeper.kept["home"] = "terraform@pve!provider=of-another-cluster"
    with pytest.raises(OtherTokenError, match="that this cluster does not have"):
        await cluster.bootstrap(TERRAFORM)
    assert cluster.keeper.kept == {"home": "terraform@pve!provider=of-another-cluster"}


async def test_a_token_that_was_refused_is_not_ours_when_somebody_else_makes_it(cluster: Cluster) -> None:
    cluster.running.add_fault(
        "answer", method="POST", path="/access/users/*", status=403, reason="no", times=1
    )
    with pytest.raises(StackyardError):
        await cluster.bootstrap(TERRAFORM)
    assert cluster.record().tokens == {}


PROVIDER = "terraform@pve!provider"


async def test_a_stopped_replacement_gives_no_role_again_that_was_taken_away_meanwhile(
    cluster: Cluster,
) -> None:
    more = {"path": "/vms", "token_id": PROVIDER, "role_id": "PVEAuditor"}
    await cluster.bootstrap({**TERRAFORM, "acl": [*TERRAFORM["acl"], more]})
    api = proxmoxer_client(cluster.running)
    api.access.roles.post(roleid="Spare", privs="VM.Audit")
    for path, role in (("/pool", "PVEPoolUser"), ("/storage", "PVEDatastoreUser"), ("/nodes", "Spare")):
        api.access.acl.put(path=path, tokens=PROVIDER, roles=role)

    # Stopped before the old token is removed: somebody takes a role from it.
    cluster.running.add_fault(
        "answer", method="DELETE", path="/access/users/*", status=500, reason="no", times=1
    )
    with pytest.raises(StackyardError):
        await cluster.bootstrap(TERRAFORM, PROVIDER)
    api.access.acl.put(path="/pool", tokens=PROVIDER, roles="PVEPoolUser", delete=1)
    # Stopped after it is made again: a role is deleted, and the file no longer gives another.
    cluster.keeper.dies = "before"
    with pytest.raises(StoppedError):
        await cluster.bootstrap(TERRAFORM, PROVIDER)
    api.access.roles("Spare").delete()
    # Stopped between two roles: the first is given, and somebody takes it away.
    cluster.running.add_fault("answer", method="PUT", path="/access/acl", status=500, reason="no", nth=2)
    with pytest.raises(StackyardError):
        await cluster.bootstrap(TERRAFORM)
    _, granted = cluster.access()
    assert ("/", PROVIDER, "Terraform") in granted
    api.access.acl.put(path="/", tokens=PROVIDER, roles="Terraform", delete=1)
    no_own = {
        **TERRAFORM,
        "acl": TERRAFORM["acl"][:1],
        "tokens": {PROVIDER: {"store": "home", "privileges_separation": False}},
    }
    await cluster.bootstrap(no_own)
    _, granted = cluster.access()
    assert granted == {("/", "terraform@pve", "Terraform"), ("/storage", PROVIDER, "PVEDatastoreUser")}
