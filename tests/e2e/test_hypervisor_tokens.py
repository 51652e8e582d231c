"""A cluster without a token: one login makes it, tokens and passwords are set beside the engine, and kills."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import proxmoxer
import pytest
import yaml
from tests.support.engine import real_engine
from tests.support.forking import fork_program
from tests.support.lab import proxmoxer_client
from tests.support.path import Yard, make_yard
from tests.support.path_kills import children_of
from tests.support.path_runs import WatchedJournal, watch_calls
from tests.support.processes import Watched

from pvelab.server.journal import JournalEntry
from stackyard import lab
from stackyard.base import yamledit
from stackyard.engine.version import Flavour
from stackyard.secrets import change_secrets
from stackyard.sources.site.edit import remove_api_token
from stackyard.sources.site.load import Site

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

PASSWORD = "canary-of-anna-4711"
ROLE = (
    "Permissions.Modify Realm.AllocateUser Sys.Audit Sys.Modify User.Modify Group.Allocate VM.Audit Pool.Audit"
).split()
CLUSTER: dict[str, Any] = {
    "roles": {"Terraform": ROLE},
    "users": {
        "terraform@pve": {"comment": "Runs OpenTofu"},
        "anna@pve": {"first_name": "Anna", "password": {"secret": "passwords.anna"}},
    },
    "tokens": {
        "terraform@pve!provider": {"privileges_separation": False, "store": "lab"},
        "anna@pve!ci": {"comment": "CI"},
    },
    "acl": [
        {"path": "/", "user_id": "terraform@pve", "role_id": "Terraform"},
        {"path": "/vms", "token_id": "anna@pve!ci", "role_id": "PVEAuditor"},
    ],
}
LOGIN = ("apply", "hypervisor:home", "--login", "root@pam", "--yes")


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    """A site whose only node has no token."""
    engine = real_engine(Flavour.TOFU)
    with lab.running(nodes=("pve1",), data=tmp_path / "lab") as running:
        made = make_yard(running, tmp_path / "site", STACKYARD_TOFU=str(engine.path))
        remove_api_token(made.folder, "lab")
        change_secrets(made.folder / "secrets.yaml", [yamledit.Set(("passwords", "anna"), PASSWORD)])
        write(made, CLUSTER)
        yield made


def write(yard: Yard, document: dict[str, Any]) -> None:
    (yard.folder / "hypervisors").mkdir(exist_ok=True)
    (yard.folder / "hypervisors" / "home.yaml").write_text(yaml.safe_dump(document, sort_keys=False))


def test_story(yard: Yard) -> None:
    print(yard.run("plan", "hypervisor:home", status=None).stderr)
    y = yard.with_env(STACKYARD_PVE_PASSWORD=yard.running.password)
    e = y.run(*LOGIN, status=None)
    print(e.status, e.stdout, e.stderr)
    e = y.run("plan", "hypervisor:home", status=None)
    print(e.status, e.stdout, e.stderr)
    api = proxmoxer_client(yard.running)
    print([(r["userid"], r.get("tokens")) for r in api.access.users.get(full=1)], api.access.acl.get())
    print(Site.load(yard.folder).secret_values.api_tokens.keys())
