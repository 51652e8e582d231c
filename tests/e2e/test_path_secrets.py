"""Planted secrets travel only to Proxmox, to the engine and into the state: nowhere else are they found."""

from __future__ import annotations

import base64
import contextlib
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
import yaml
from tests.support.cli import fresh
from tests.support.engine import real_engine
from tests.support.lab_forging import Forgery, forged
from tests.support.path import Yard, make_yard
from tests.support.path_runs import DNS, WEB, watch_calls

from pvelab.seeds import PREPARED_STORAGES
from pvelab.server.journal import JournalEntry
from stackyard import lab
from stackyard.engine.version import Flavour
from stackyard.path.planfile import PlanFile, plan_keys
from stackyard.sources.store import ChosenStore
from stackyard.sources.store.keys import site_keys

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

CANARIES = {
    "API token": "0ca9a21e-1111-4111-8111-c0ffee0ddba1",
    "password of the nodes": "canary-of-the-nodes-7f3a",
    "password of guests": "$6$canarysalt$canaryofguests5TQ0wjRrBq",
    "token of a guest": "canary-of-a-guest-91bc",
    "token of the site": "canary-of-the-site-28de",
    "signing key": "ca" * 32,
}
_BASE64 = re.compile(rb"[A-Za-z0-9+/=]{200,}")


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    engine = real_engine(Flavour.TOFU)
    seed = lab.Seed(
        name="canaries",
        token=CANARIES["API token"],
        password=CANARIES["password of the nodes"],
        storages=PREPARED_STORAGES,
    )
    with lab.running(nodes=("pve1",), ssh_port=0, seed=seed, data=tmp_path / "lab") as running:
        temporary = tmp_path / "tmp"
        temporary.mkdir()
        made = make_yard(running, tmp_path / "site", STACKYARD_TOFU=str(engine.path), TMPDIR=str(temporary))
        # The system shows the arguments and the environment with which a process was started.
        made = replace(made, program=fresh)
        made.write_env("t", [{**WEB, "spec": "base"}, DNS])
        secrets = {
            "api_tokens": {"lab": running.api_token},
            "passwords": {"node_lab": running.password, "vm_root": CANARIES["password of guests"]},
            "auth": {
                "node_tokens": {"web": CANARIES["token of a guest"]},
                "site_token": CANARIES["token of the site"],
                "signing_key": CANARIES["signing key"],
            },
        }
        (made.folder / "secrets.yaml").write_text(yaml.safe_dump(secrets))
        yield made


def found_in(data: bytes) -> list[str]:
    """Return which secrets are in some bytes: plain, as JSON writes them, or in base64 within."""
    texts = [data, *(_decoded(match[0]) for match in _BASE64.finditer(data))]
    return sorted({name for name, secret in CANARIES.items() for text in texts if secret.encode() in text})


def _decoded(text: bytes) -> bytes:
    with contextlib.suppress(ValueError):
        decoded = base64.b64decode(text + b"=" * (-len(text) % 4))
        with contextlib.suppress(zlib.error):
            return zlib.decompress(decoded, wbits=47)
        return decoded
    return b""


def leaks_below(folder: Path) -> dict[str, list[str]]:
    """Return the files with secrets in them."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): found for path in files if (found := found_in(path.read_bytes()))}


@dataclass
class Eavesdropper:
    """Looks at every process of the machine while calls are answered.

    Attributes:
        leaks: Where secrets were seen.
        looked_at: How many processes were looked at.
        engines: How often an engine was seen at work.
    """

    leaks: set[str] = field(default_factory=set)
    looked_at: int = 0
    engines: int = 0

    def look(self, _call: JournalEntry) -> None:
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                arguments = (folder / "cmdline").read_bytes()
                environment = (folder / "environ").read_bytes()
                # Looked at last: a process may become an engine at any time; those of other tests do, too.
                is_engine = (folder / "comm").read_text() == "tofu\n"
                self.looked_at += 1
                self.engines += is_engine
                if found_in(arguments):
                    self.leaks.add(f"arguments of {arguments[:60]!r}: {found_in(arguments)}")
                if found_in(environment) and not is_engine:
                    self.leaks.add(f"environment of {arguments[:60]!r}: {found_in(environment)}")


def modes(folder: Path) -> Mapping[str, int]:
    """Return what others may do with each file and folder."""
    return {str(path): path.stat().st_mode & 0o077 for path in (folder, *folder.rglob("*"))}


def test_secrets_are_nowhere_but_where_they_are_used(yard: Yard, tmp_path: Path) -> None:
    journal, ear = watch_calls(yard.running), Eavesdropper()
    journal.on_call = ear.look
    planned = yard.run("plan", "t", "--out", "saved.plan", "-v")
    applied = yard.run("apply", "t", "-v", "--events", "--no-verify")
    journal.on_call = None

    # They were used: one is in the data that the guest boots with, and the engine was told.
    sent = leaks_below(tmp_path / "lab" / "files")
    assert list(sent.values()) == [["password of guests"]]
    assert ear.engines > 0
    assert ear.looked_at > 0

    assert ear.leaks == set()
    for ended in (planned, applied):
        assert found_in(ended.stdout.encode()) == []
        assert found_in(ended.stderr.encode()) == []

    private = yard.folder / ".stackyard"
    outside = {name for name in leaks_below(yard.folder) if not name.startswith(".stackyard/state/")}
    assert outside == {"secrets.yaml"}
    assert {path: mode for path, mode in modes(private).items() if mode and "/.terraform" not in path} == {}
    assert private.stat().st_mode & 0o077 == 0

    assert leaks_below(tmp_path / "tmp") == {}
    assert [path.name for path in (tmp_path / "tmp").iterdir() if path.name.startswith("stackyard")] == []
    journalled = "\n".join(map(str, yard.running.world.journal.entries()))
    assert found_in(journalled.encode()) == []


def test_a_saved_plan_holds_no_secret_even_when_it_is_opened(yard: Yard) -> None:
    yard.run("plan", "t", "--out", "saved.plan")
    path = yard.folder / "saved.plan"
    assert path.stat().st_mode & 0o077 == 0
    assert found_in(path.read_bytes()) == []
    store = ChosenStore(base=yard.folder / ".stackyard")
    with contextlib.closing(store.read()) as objects:
        keys = plan_keys(site_keys(store, objects, create=False).ring)
    # Inside the envelope is what OpenTofu encrypted itself.
    assert found_in(PlanFile.load(path, keys).plan) == []


def test_a_destruction_shows_no_secret_that_the_cluster_says(yard: Yard, tmp_path: Path) -> None:
    """They are in the data of guests and in the state; here the cluster repeats them wherever it can."""
    yard.run("apply", "t", "--no-verify")
    said = " ".join(CANARIES.values())
    forgeries: dict[str, Forgery] = {
        "GET /nodes/*/500/config": lambda answer: {**answer, "description": said, "tags": said},
        "GET /nodes/*/501/config": lambda answer: {**answer, "description": said},
        "GET /nodes/*/tasks/*/log": lambda rows: [{"n": 1, "t": said}, *rows],
    }
    fault = yard.running.add_fault("task", task="qmdestroy", text=f"it holds {said}")
    journal, ear = watch_calls(yard.running), Eavesdropper()
    journal.on_call = ear.look
    with forged(forgeries):
        ends = [yard.run("drift", "t", "-v"), yard.run("plan", "t", "-v", "--events")]
        allowed = ("destroy", "t", "--yes", "--allow-destroy", "web,dns", "-v")
        ends.append(yard.run(*allowed, status=1))
        assert "qmdestroy" in ends[-1].stderr
        yard.running.remove_fault(fault)
        ends.append(yard.run(*allowed, "--events"))
    journal.on_call = None
    assert yard.guests() == {}
    assert ear.leaks == set()
    assert [found_in(text.encode()) for ended in ends for text in (ended.stdout, ended.stderr)] == [[]] * 8
    outside = {name for name in leaks_below(yard.folder) if not name.startswith(".stackyard/state/")}
    assert outside == {"secrets.yaml"}
