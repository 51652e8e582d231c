"""`stackyard connect`: from an empty folder to a site that plans and applies, and every way to be refused."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import asyncssh
import proxmoxer
import pytest
import yaml
from tests.support.connecting import Newcomer

from stackyard import lab
from stackyard.base import yamledit
from stackyard.guard.features import DEFAULT_FEATURES, list_privileges
from stackyard.secrets import change_secrets
from stackyard.sources.site.load import Site

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

USER, TOKEN_ID = "stackyard@pve", "stackyard@pve!connect"
WANTED = {one.privilege for one in list_privileges(DEFAULT_FEATURES)} - {"VM.Monitor"}


def newcomer(running: lab.Running, tmp_path: Path) -> Newcomer:
    folder = tmp_path / "yard"
    folder.mkdir()
    return Newcomer(running=running, folder=folder)


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Newcomer]:
    with lab.running(nodes=("pve1",)) as running:
        yield newcomer(running, tmp_path)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Newcomer]:
    with lab.running(nodes=("pve1", "pve2", "pve3")) as running:
        yield newcomer(running, tmp_path)


def as_token(who: Newcomer, token: str) -> proxmoxer.ProxmoxAPI:
    name, _, secret = token.partition("=")
    user, _, token_name = name.partition("!")
    return proxmoxer.ProxmoxAPI(
        "127.0.0.1",
        port=who.running.port,
        user=user,
        token_name=token_name,
        token_value=secret,
        verify_ssl=False,
    )


# --- From an empty folder


def test_an_empty_folder_becomes_a_site_that_applies_its_first_env(alone: Newcomer) -> None:
    done = alone.connect("--json").document
    assert done["site"]["is_new"] is True
    assert done["site"]["nodes"] == {"pve1": "pve1"}
    assert [report["ready"] for report in done["preflight"]] == [True]
    assert done["next"] == ["stackyard plan first"]
    node = yaml.safe_load((alone.folder / "nodes/pve1.yaml").read_text())
    assert node["api_endpoint"] == alone.running.url
    assert node["api_fingerprint"] == alone.running.fingerprint
    assert (node["datastore"], node["file_datastore"]) == ("local-lvm", "local")
    alone.run("plan", "first")
    applied = alone.run("apply", "first", "--json").document
    assert "first" in str(applied)
    assert len(alone.api.cluster.resources.get(type="vm")) == 1
    assert "Nothing to change" in alone.run("plan", "first").stdout


def test_a_cluster_of_three_becomes_three_nodes_with_one_token(cluster: Newcomer) -> None:
    done = cluster.connect("--json").document
    assert done["cluster"]["name"] == "lab"
    assert done["site"]["api_token"] == "lab"
    assert sorted(done["site"]["nodes"]) == ["pve1", "pve2", "pve3"]
    assert all(report["ready"] for report in done["preflight"])
    site = Site.load(cluster.folder)
    assert {node.model.api_token for node in site.nodes.values()} == {"lab"}
    assert {node.model.api_fingerprint for node in site.nodes.values()} == {cluster.running.fingerprint}
    env = cluster.folder / "envs" / "first.yaml"
    env.write_text(
        env.read_text()
        + "  - {name: other, type: ct, image: debian-13-ct, cores: 1, memory: 512, disk: 4, node: pve3}\n"
    )
    cluster.run("apply", "first")
    rows = cluster.api.cluster.resources.get(type="vm")
    assert {row["node"] for row in rows} == {"pve1", "pve3"}


def test_the_certificate_of_each_node_is_recorded(cluster: Newcomer) -> None:
    cluster.connect()
    own = {row["node"]: row["ssl_fingerprint"] for row in cluster.api.nodes.get()}
    assert len(set(own.values())) == 3
    for name in ("pve2", "pve3"):
        text = (cluster.folder / "nodes" / f"{name}.yaml").read_text()
        # Its own address does not answer from here, so that another node answers for it.
        assert f"# The SHA-256 of its own certificate: {own[name]}" in text
        assert f"api_fingerprint: {cluster.running.fingerprint}" in text


def test_a_certificate_that_the_system_verifies_is_not_pinned(alone: Newcomer, tmp_path: Path) -> None:
    [served] = [
        row["pem"]
        for row in alone.api.nodes("pve1").certificates.info.get()
        if row["filename"] == "pve-ssl.pem"
    ]
    (tmp_path / "authority.pem").write_text(served)
    done = alone.run(
        *("connect", alone.running.url, "--user", "root@pam", "--json"),
        SSL_CERT_FILE=str(tmp_path / "authority.pem"),
        STACKYARD_PVE_PASSWORD=alone.running.password,
    ).document
    assert done["certificate"]["verified_by_system"] is True
    assert "api_fingerprint" not in (alone.folder / "nodes/pve1.yaml").read_text()


# --- The token


def test_the_token_has_the_privileges_that_were_listed_and_no_others(alone: Newcomer) -> None:
    done = alone.connect("--json").document
    assert {one["privilege"] for one in done["access"]["privileges"]} == WANTED
    assert all(one["why"] for one in done["access"]["privileges"])
    held = as_token(alone, alone.token("pve1")).access.permissions.get()
    assert {name for granted in held.values() for name in granted} == WANTED
    [token] = alone.api.access.users(USER).token.get()
    assert token["privsep"] == 1


def test_a_read_only_token_reads_and_creates_nothing(alone: Newcomer) -> None:
    done = alone.connect("--feature", "read", "--json").document
    assert {one["feature"] for one in done["access"]["privileges"]} == {"read"}
    api = as_token(alone, alone.token("pve1"))
    assert api.nodes("pve1").storage.get()
    with pytest.raises(proxmoxer.ResourceException, match="403"):
        api.nodes("pve1").lxc.post(vmid=100, ostemplate="local:vztmpl/x.tar.zst")
    assert alone.run("apply", "first", "--json", status=None).status != 0


def test_what_a_feature_adds_is_added_to_the_role_and_shown(alone: Newcomer) -> None:
    alone.connect()
    more = alone.connect("--feature", "guests,images,pools,ha").stderr
    assert "change the role StackyardConnect: add Sys.Console" in more
    roles = {row["roleid"]: row["privs"] for row in alone.api.access.roles.get()}
    assert set(roles["StackyardConnect"].split(",")) == WANTED | {"Sys.Console"}


def test_a_second_run_changes_nothing(alone: Newcomer) -> None:
    alone.connect()
    before = alone.files(), alone.access()
    again = alone.connect("--json").document
    assert again["access"]["done"] == []
    assert again["site"]["files"] == []
    assert (alone.files(), alone.access()) == before


def test_a_lost_secret_is_an_error_until_the_token_is_renewed(alone: Newcomer, tmp_path: Path) -> None:
    alone.connect()
    old = alone.token("pve1")
    (tmp_path / "other").mkdir()
    other = Newcomer(running=alone.running, folder=tmp_path / "other")
    before = alone.access()
    error = other.error(status=1)
    assert error["code"] == "E-CONNECT-TOKEN-EXISTS"
    assert "--renew-token" in error["remedy"]
    assert (other.files(), alone.access()) == ({}, before)
    other.connect("--renew-token")
    assert other.token("pve1") != old
    assert alone.error(status=1)["code"] == "E-CONNECT-TOKEN-EXISTS"
    alone.connect("--token-name", "second", "--overwrite")
    assert alone.token("pve1").startswith("stackyard@pve!second=")


def test_printed_commands_make_the_token_and_nothing_else_is_done(alone: Newcomer) -> None:
    before = alone.access()
    printed = alone.run("connect", alone.running.url, "--print", "--json").document
    assert (alone.files(), alone.access()) == ({}, before)
    assert [command.split()[:3] for command in printed["commands"]] == [
        ["pveum", "role", "add"],
        ["pveum", "user", "add"],
        ["pveum", "acl", "modify"],
        ["pveum", "user", "token"],
        ["pveum", "acl", "modify"],
    ]
    assert printed["next"].endswith("--token 'stackyard@pve!connect'")
    assert "VM.Monitor" in printed["commands_pve_8"][0]
    assert "VM.Monitor" not in printed["commands"][0]


def test_an_administrator_runs_the_printed_commands_and_the_token_connects(tmp_path: Path) -> None:
    with lab.running(nodes=("pve1",), ssh_port=0) as running:
        who = newcomer(running, tmp_path)
        printed = who.run("connect", running.url, "--print", "--json").document
        said = asyncio.run(run_on_node(running, printed["commands"]))
        [secret] = re.findall(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", said)
        done = who.connect("--token", TOKEN_ID, "--json", STACKYARD_PVE_TOKEN=secret).document
        assert done["access"]["is_given_token"] is True
        assert done["access"]["missing"] == []
        who.run("apply", "first")


async def run_on_node(running: lab.Running, commands: list[str]) -> str:
    """Run commands as root in a shell of the node; return what they print."""
    said = ""
    options = {"username": "root", "password": running.password, "known_hosts": None, "config": None}
    async with asyncssh.connect("127.0.0.1", running.ssh_port, client_keys=None, **options) as ssh:
        for command in commands:
            done = await ssh.run(command, check=True)
            said += str(done.stdout)
    return said


# --- A token that was given


def limited(who: Newcomer, privileges: str, path: str = "/") -> str:
    api = who.api
    api.access.users.post(userid="ops@pve")
    api.access.roles.post(roleid="ops", privs=privileges)
    made = api.access.users("ops@pve").token("ci").post()
    for kind, ident in (("users", "ops@pve"), ("tokens", "ops@pve!ci")):
        api.access.acl.put(**{"path": path, "roles": "ops", kind: ident})
    return f"{made['full-tokenid']}={made['value']}"


def test_a_token_that_may_not_create_another_is_used_itself(alone: Newcomer) -> None:
    token = limited(alone, ",".join(sorted(WANTED - {"VM.Clone"})))
    before = alone.access()
    done = alone.connect("--token", "ops@pve!ci", "--json", STACKYARD_PVE_TOKEN=token).document
    assert done["access"]["is_given_token"] is True
    assert [one["privilege"] for one in done["access"]["missing"]] == ["VM.Clone"]
    assert alone.access() == before
    assert alone.token("pve1") == token
    again = alone.connect("--token", "ops@pve!ci", "--json", STACKYARD_PVE_TOKEN=token.partition("=")[2])
    assert again.document["site"]["files"] == []
    alone.run("apply", "first")


def test_a_token_that_sees_little_says_what_is_hidden(alone: Newcomer) -> None:
    token = limited(alone, "Datastore.Audit,VM.Audit", "/storage/local-lvm")
    seen = alone.connect("--token", "ops@pve!ci", status=None, STACKYARD_PVE_TOKEN=token)
    assert "hidden from ops@pve!ci: the addresses of nodes and the name of the cluster" in seen.stderr
    assert "missing: VM.Allocate, to create and remove guests (guests)" in seen.stderr
    assert re.search(r"^  guests +not all of it$", seen.stderr, re.MULTILINE)


def test_a_token_that_sees_no_datastore_is_refused_unless_one_is_named(alone: Newcomer) -> None:
    token = limited(alone, "VM.Audit", "/vms")
    error = alone.error("--token", "ops@pve!ci", status=65, STACKYARD_PVE_TOKEN=token)
    assert error["code"] == "E-CONNECT-DATASTORE"
    assert alone.files() == {}
    named = ("--datastore", "local-lvm", "--feature", "read")
    alone.connect("--token", "ops@pve!ci", *named, status=None, STACKYARD_PVE_TOKEN=token)
    assert Site.load(alone.folder).nodes["pve1"].model.datastore == "local-lvm"


def test_a_token_of_an_administrator_creates_one_with_less(alone: Newcomer) -> None:
    done = alone.connect("--token", "root@pam!lab", "--json", STACKYARD_PVE_TOKEN=alone.running.api_token)
    assert done.document["access"]["token"] == TOKEN_ID
    assert alone.running.api_token.partition("=")[2] not in str(alone.token("pve1"))


# --- What the token is for


def test_the_token_is_enough_for_virtual_machines_with_images_and_user_data(tmp_path: Path) -> None:
    with lab.running(nodes=("pve1",), ssh_port=0) as running:
        who = newcomer(running, tmp_path)
        who.connect()
        open_ssh(who)
        who.run("apply", "dev")
        rows = who.api.cluster.resources.get(type="vm")
        assert sorted(row["name"] for row in rows) == ["db", "dns", "web"]
        who.run("destroy", "dev", "--allow-destroy", "web,db,dns")


WIDE = """\
node: pve1
posture: local
pools: {shop: {comment: The shop}}
networks:
  shop: {type: vxlan, zone: shop, tag: 20010, cidr: 10.10.20.0/24}
vms:
  - name: one
    type: ct
    image: debian-13-ct
    cores: 1
    memory: 512
    disk: 4
    pool: shop
    network: shop
    ip: 10.10.20.11/24
    startup: {order: 2}
    ha: {}
"""


def test_the_other_features_are_enough_for_pools_networks_and_high_availability(cluster: Newcomer) -> None:
    cluster.connect("--feature", "guests,images,pools,networks,start-order,ha")
    (cluster.folder / "envs" / "wide.yaml").write_text(WIDE)
    cluster.run("apply", "wide", "--no-verify")
    api = cluster.api
    assert [row["poolid"] for row in api.pools.get()] == ["shop"]
    assert [row["vnet"] for row in api.cluster.sdn.vnets.get()] == ["shop"]
    assert [row["type"] for row in api.cluster.ha.resources.get()] == ["ct"]


def test_no_secret_is_in_events_or_verbose_output(alone: Newcomer) -> None:
    ended = alone.connect("--events", "-v")
    secret = alone.token("pve1").partition("=")[2]
    for text in (alone.running.password, secret):
        assert text not in ended.stdout
        assert text not in ended.stderr


def open_ssh(who: Newcomer) -> None:
    """Let the site reach the SSH of the node, as `ssh-copy-id` does for a real one."""
    port = who.running.document()["ssh_ports"]["pve1"]
    node = who.folder / "nodes" / "pve1.yaml"
    node.write_text(f"{node.read_text()}ssh_port: {port}\nssh_jump: true\n")
    password = yamledit.Set(("passwords", "node_pve1"), who.running.password)
    change_secrets(who.folder / "secrets.yaml", [password])
