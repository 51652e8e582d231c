"""A cluster without a token: one login makes it, and tokens and passwords are set beside the engine."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.forking import fork_program
from tests.support.lab import proxmoxer_client
from tests.support.pages import Reader, blocks_of
from tests.support.path import Yard, provider_settings
from tests.support.path_kills import children_of
from tests.support.path_runs import WatchedJournal, watch_calls
from tests.support.token_site import CLUSTER, PASSWORD, TARGET, make_token_yard, write_cluster

from pvelab.server.journal import JournalEntry
from stackyard import lab
from stackyard.base import yamledit
from stackyard.secrets import change_secrets
from stackyard.sources.site.load import Site
from stackyard.sources.store import ChosenStore

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

PAGE = "docs/howto/tokens-and-passwords.md"
LOGIN = ("apply", TARGET, "--login", "root@pam")
# The first two are of the login, the others of the apply.
KILLS = (
    ("POST", "/access/users"),
    ("POST", "/token/provider"),
    ("POST", "/token/ci"),
    ("PUT", "/access/password"),
)


@pytest.fixture(params=["builtin", pytest.param("bpg", marks=pytest.mark.bpg)])
def yard(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Yard]:
    """A site whose only node `pve` has no token, and who may log in to it."""
    env = provider_settings(request.param, tmp_path)
    with lab.running(nodes=("pve1",), data=tmp_path / "lab") as running:
        yield make_token_yard(running, tmp_path / "site", **env)


def killed_at(
    yard: Yard, journal: WatchedJournal, method: str, path: str, *, command: tuple[str, ...] = LOGIN
) -> tuple[bool, set[bytes]]:
    """Run a command, and kill it with its engine once a call is done; return whether, and all arguments."""
    with open(os.devnull, "r+b") as nothing:
        streams = (nothing.fileno(),) * 3
        program = fork_program(command, streams=streams, cwd=yard.folder, env={**os.environ, **yard.env})
    arguments: set[bytes] = set()

    def saw(entry: JournalEntry) -> None:
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                arguments.add((folder / "cmdline").read_bytes())
        if entry.method == method and entry.path.endswith(path):
            journal.on_call = None
            for pid in children_of(program.pid, "tofu"):
                os.kill(pid, signal.SIGKILL)
            program.kill()

    journal.on_call = saw
    status = program.wait()
    journal.on_call = None
    return status == -signal.SIGKILL, arguments


def stored_texts(yard: Yard) -> Iterator[bytes]:
    """Yield everything that the run left: each file, and each object of the store as it is and unpacked."""
    for path in yard.folder.rglob("*"):
        if path.is_file():
            yield path.read_bytes()
    with contextlib.closing(ChosenStore(base=yard.folder / ".stackyard").read()) as objects:
        for one in objects.list(""):
            stored = objects.get(one.key)
            assert stored is not None
            yield stored.data
            with contextlib.suppress(zlib.error):
                yield zlib.decompress(stored.data, wbits=47)


def test_one_login_makes_the_tokens_whenever_it_is_killed_and_no_secret_is_anywhere(yard: Yard) -> None:
    error = yard.json("plan", TARGET, status=65)["error"]
    assert error["code"] == "E-NODE-TOKEN"
    assert f"stackyard apply {TARGET} --login root@pam" in error["remedy"]

    journal, arguments = watch_calls(yard.running), set[bytes]()
    for method, path in KILLS:
        was_killed, seen = killed_at(yard, journal, method, path)
        assert was_killed, (method, path)
        arguments |= seen
    ended = yard.run(*LOGIN, "--events", "-v")

    # Everything is there once, the engine took over what the login had made, and the secrets work.
    assert yard.json("plan", TARGET)["has_changes"] is False
    assert yard.json("drift", TARGET)["has_drift"] is False
    api = proxmoxer_client(yard.running)
    tokens = {
        row["userid"]: [one["tokenid"] for one in row.get("tokens") or ()]
        for row in api.access.users.get(full=1)
    }
    assert tokens == {"root@pam": ["lab"], "terraform@pve": ["provider"], "anna@pve": ["ci"]}
    granted = {(row["path"], row["ugid"], row["roleid"]) for row in api.access.acl.get()}
    assert granted == {("/", "terraform@pve", "Terraform"), ("/vms", "anna@pve!ci", "PVEAuditor")}
    assert api.access.ticket.post(username="anna@pve", password=PASSWORD)["username"] == "anna@pve"
    kept = Site.load(yard.folder).secret_values.api_tokens
    assert {name: text.partition("=")[0] for name, text in kept.items()} == {
        "pve": "terraform@pve!provider",
        "ci": "anna@pve!ci",
    }

    secret = [PASSWORD, yard.running.password, *(text.partition("=")[2] for text in kept.values())]
    journalled = "\n".join(map(str, journal.entries())).encode()
    shown = [ended.stdout.encode(), ended.stderr.encode(), journalled, *arguments]
    left = list(stored_texts(yard))
    assert any(b'"user_id":"anna@pve"' in text.replace(b" ", b"") for text in left), (
        "the state is looked into"
    )
    for text in [*shown, *left]:
        assert not [one for one in secret if one.encode() in text]


def test_the_page_is_true_and_tokens_are_renewed_changed_and_removed(yard: Yard, tmp_path: Path) -> None:
    editor = {"EDITOR": f"sed -i s/{PASSWORD}/canary-2/"}
    reader = Reader(folder=yard.folder, programs=tmp_path / "bin", env={**yard.env, **editor})
    printed = "".join(map(reader.type, blocks_of(PAGE)))
    assert "Nothing to change" in printed
    assert "1 created, 0 changed, 1 destroyed" in printed
    api = proxmoxer_client(yard.running)
    api.access.users("anna@pve").token("ci").put(comment="mine", privsep=0)
    rows = {one["subject"]: one for one in yard.json("drift", TARGET)["managed"]}
    assert {one["attribute"] for one in rows["token anna@pve!ci"]["differences"]} == {
        "comment",
        "privileges_separation",
    }

    # Somebody makes the token anew: the site's secret is refused until the token is named.
    api.access.users("anna@pve").token("ci").delete()
    api.access.users("anna@pve").token("ci").post(comment="CI")
    assert "E-TOKEN-SECRET-REFUSED" in yard.codes("apply", TARGET)
    plan = yard.json("plan", TARGET, "--renew-token", "anna@pve!ci", "--out", "saved.plan")
    assert [(one["subject"], one["action"]) for one in plan["changes"]] == [
        ("token anna@pve!ci", "replace"),
        ("role of the token anna@pve!ci (PVEAuditor on /vms)", "create"),
    ]
    yard.run("apply", TARGET, "--plan", "saved.plan", "--renew-token", "anna@pve!ci")

    # A password is set again only with a login, the token in use stays, and another goes when it is named.
    change_secrets(yard.folder / "secrets.yaml", [yamledit.Set(("passwords", "anna"), "another-secret-1")])
    write_cluster(yard, {**CLUSTER, "tokens": {"anna@pve!ci": CLUSTER["tokens"]["anna@pve!ci"]}})
    codes = yard.codes("apply", TARGET)
    assert codes == ["E-TOKEN-IN-USE"]
    provider = {"terraform@pve!provider": CLUSTER["tokens"]["terraform@pve!provider"]}
    write_cluster(yard, {**CLUSTER, "tokens": provider, "acl": CLUSTER["acl"][:1]})
    assert yard.codes("apply", TARGET) == ["E-GUARD-DESTROYS-TOKEN"]
    allowed = ("apply", TARGET, "--allow-destroy", "anna@pve!ci")
    assert yard.json(*allowed, status=65)["error"]["code"] == "E-PASSWORD-LOGIN"
    yard.run(*LOGIN, "--allow-destroy", "anna@pve!ci")
    assert api.access.users("anna@pve").token.get() == []
    assert api.access.ticket.post(username="anna@pve", password="another-secret-1")
    assert list(Site.load(yard.folder).secret_values.api_tokens) == ["pve"]
    assert yard.json("plan", TARGET)["has_changes"] is False


def test_a_cluster_with_its_own_token_is_destroyed_but_for_what_the_token_needs(yard: Yard) -> None:
    extra = {**CLUSTER, "roles": {**CLUSTER["roles"], "Spare": ["VM.Audit"]}}
    write_cluster(yard, extra)
    yard.run(*LOGIN)
    api, journal = proxmoxer_client(yard.running), watch_calls(yard.running)

    refused = yard.json("destroy", TARGET, status=1)["error"]
    assert refused["code"] == "E-GUARD-REFUSED"
    permits = re.search(r"--allow-destroy .(\S+)'", refused["remedy"])
    assert permits is not None, refused["remedy"]
    assert "provider" not in permits[1]
    command = ("destroy", TARGET, "--yes", "--allow-destroy", permits[1])
    was_killed, _ = killed_at(yard, journal, "DELETE", "/token/ci", command=command)
    assert was_killed
    ended = yard.json(*command)
    (kept,) = [one for one in ended["guard"]["warnings"] if one["code"] == "W-TOKEN-KEPT"]
    for name in ("terraform@pve!provider", "pveum user delete terraform@pve", "pveum role delete Terraform"):
        assert name in kept["detail"]
    assert [row["userid"] for row in api.access.users.get()] == ["root@pam", "terraform@pve"]
    assert "Spare" not in {row["roleid"] for row in api.access.roles.get()}
    assert list(Site.load(yard.folder).secret_values.api_tokens) == ["pve"]

    # What stays is used: the next destroy has nothing to do, and an apply adopts it without a conflict.
    again = yard.json("destroy", TARGET, "--yes")
    assert [one["code"] for one in again["guard"]["warnings"]] == ["W-TOKEN-KEPT"]
    assert "pveum user delete terraform@pve" in again["guard"]["warnings"][0]["detail"]
    yard.run(*LOGIN)
    assert yard.json("plan", TARGET)["has_changes"] is False
