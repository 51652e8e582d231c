"""What guests should be, how they are logged in to, and how they find the controller of a run."""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

import pytest
from tests.support.site import SEED, write_site

from stackyard.operator.guests import GuestContext, GuestTimeouts, guest_context, pull_service
from stackyard.operator.guests.pull import CallbackError
from stackyard.path.manifests import resolve_manifest
from stackyard.render.userdata import cloud_config
from stackyard.sources.manifest.read import ManifestRequest, find_manifest
from stackyard.sources.site.pull import OWN_KEY_FILE
from stackyard.sources.site.resolver import ConfigResolver

SITE = SEED["site.yaml"].replace("  spec_server: https://controller:44443\n", "")
HARD = """\
schema_version: 1
access: {posture: hard, users: [{name: homestak, sudo: true}, {name: ops, sudo: true}]}
platform: {packages: [nginx]}
"""
POSTURE = """\
auth: {method: node_token}
ssh: {port: 2222, permit_root_login: "no", password_authentication: "no"}
sudo: {nopasswd: false}
"""
VM = {"type": "vm", "image": "debian-12", "preset": "small"}
CT = {"type": "ct", "image": "debian-13-ct", "cores": 1, "memory": 256, "disk": 2}


def resolver_of(folder: Path, **changed: str) -> ConfigResolver:
    images = 'images: {debian-13-ct: {volume: "local:vztmpl/debian-13.tar.zst"}}\n'
    files = {**SEED, "site.yaml": SITE + images, "v2/specs/hard.yaml": HARD, "v2/postures/hard.yaml": POSTURE}
    return ConfigResolver(write_site(folder / "site", files, **changed))


def context_of(resolver: ConfigResolver, *nodes: dict[str, Any], host: str = "father") -> GuestContext:
    document = {"schema_version": 2, "name": "m", "nodes": list(nodes), "settings": {"timeout_buffer": 5}}
    manifest = find_manifest(resolver.site, ManifestRequest(text=json.dumps(document)))

    async def opened() -> GuestContext:
        async with guest_context(resolver, manifest, host, patience=GuestTimeouts(ssh_s=1.0)) as context:
            return context

    return asyncio.run(opened())


def test_a_pushed_document_is_the_spec_with_the_name_and_packages_of_the_guest(tmp_path: Path) -> None:
    context = context_of(
        resolver_of(tmp_path),
        {"name": "web", **VM, "spec": "hard", "packages": ["jq"]},
        {"name": "bare", **VM},
        {"name": "box", **CT, "packages": ["tree"]},
    )
    assert context.patience.ssh_s == 6.0
    nodes = context.manifest.by_name
    web = context.document(nodes["web"])
    assert web is not None
    assert web["identity"]["hostname"] == "web"
    assert {"nginx", "jq"} <= set(web["platform"]["packages"])
    assert [(user["name"], user.get("automation", False)) for user in web["access"]["users"]] == [
        ("homestak", True),
        ("ops", False),
    ]
    assert context.document(nodes["bare"]) is None
    box = context.document(nodes["box"])
    assert box is not None
    assert [user["name"] for user in box["access"]["users"]] == ["homestak"]
    # Those of the site, of the posture, of the guest, and what its user needs.
    assert {"htop", "strace", "tree", "sudo"} <= set(box["platform"]["packages"])


def test_guests_are_tried_by_the_ways_that_their_posture_leaves(tmp_path: Path) -> None:
    resolver = resolver_of(tmp_path)
    key = resolver.site.root / OWN_KEY_FILE
    key.parent.mkdir(parents=True)
    key.write_text("key")
    context = context_of(
        resolver, {"name": "web", **VM, "spec": "hard"}, {"name": "box", **CT, "spec": "hard"}
    )
    resolved = resolve_manifest(resolver, context.manifest, "father")
    guests = {guest.name: guest for guest in resolved.desired.guests}
    ways = {name: context.hosts(context.manifest.by_name[name], guests[name], "10.0.12.9") for name in guests}
    assert [(host.username, host.port) for host in ways["web"]] == [("homestak", 2222), ("homestak", 22)]
    assert [(host.username, host.port) for host in ways["box"]] == [
        *(("homestak", 2222), ("root", 2222), ("homestak", 22), ("root", 22)),
    ]
    assert ways["web"][0].host_keys == (context.boots.read()["web"].public_key,)
    assert (ways["box"][0].host_keys, ways["box"][0].alias) == ((), "manifest/m/father/box")
    assert all(host.key_files == (key,) and host.via is None for host in (*ways["web"], *ways["box"]))


def test_the_key_that_the_site_names_is_the_only_one(tmp_path: Path) -> None:
    text = SITE.replace("defaults:\n", "defaults:\n  ssh_key_file: keys/mine\n", 1)
    node = SEED["nodes/father.yaml"] + "ssh_jump: true\nssh_port: 2022\n"
    resolver = resolver_of(tmp_path, site=text, nodes__father=node)
    context = context_of(resolver, {"name": "web", **VM})
    assert context.jump is not None
    assert context.jump.key_files == (resolver.site.root / "keys/mine",)
    assert (context.jump.address, context.jump.port) == ("10.0.12.61", 2022)
    guest = resolve_manifest(resolver, context.manifest, "father").desired.vms[0]
    (host, *_) = context.hosts(context.manifest.by_name["web"], guest, "10.9.0.5")
    assert host.via == context.jump


def test_host_keys_are_in_the_user_data_by_the_names_of_their_secrets(tmp_path: Path) -> None:
    context = context_of(resolver_of(tmp_path), {"name": "web", **VM})
    resolved = resolve_manifest(context.resolver, context.manifest, "father")
    (vm,) = resolved.desired.vms
    assert vm.cloud_init is not None
    text = cloud_config(vm, vm.cloud_init)
    assert not isinstance(text, str)
    assert any("ed25519_public" in part for part in text if isinstance(part, str))
    (name,) = {part.secret for part in text if not isinstance(part, str)} - {"passwords.vm_root"}
    assert name == "guests.web.host_key"
    key = context.boots.read()["web"].private_key
    assert (
        resolved.secrets.reveal(next(p for p in text if not isinstance(p, str) and p.secret == name)) == key
    )
    # Of a second look comes the same plan, and of a guest that is forgotten another one.
    assert resolve_manifest(context.resolver, context.manifest, "father").desired == resolved.desired
    context.forget("web")
    assert resolve_manifest(context.resolver, context.manifest, "father").desired != resolved.desired


def served(resolver: ConfigResolver, host: str, mode: str = "pull") -> str | None:
    node = {"name": "web", **VM, "spec": "hard", "execution": {"mode": mode}}
    document = {"schema_version": 2, "name": "m", "nodes": [node]}
    manifest = find_manifest(resolver.site, ManifestRequest(text=json.dumps(document)))

    async def go() -> str | None:
        async with pull_service(resolver, manifest, host) as service:
            return None if service is None else service.server

    return asyncio.run(go())


def test_a_controller_runs_only_where_guests_pull_and_the_site_has_none(tmp_path: Path) -> None:
    assert served(resolver_of(tmp_path), "father", mode="push") is None
    assert served(resolver_of(tmp_path / "own", site=SEED["site.yaml"]), "father", mode="push") is None
    tokens = SEED["secrets.yaml"].replace("    test:", "    web: token-of-web\n    test:")
    own = resolver_of(tmp_path / "two", site=SEED["site.yaml"], secrets=tokens)
    assert served(own, "father") is None


def test_guests_are_told_the_address_that_the_node_file_says_or_that_leads_to_the_node(
    tmp_path: Path,
) -> None:
    with pytest.raises(CallbackError, match="its guests cannot reach"):
        served(resolver_of(tmp_path), "pve")
    said = SEED["nodes/pve.yaml"] + "controller_address: 10.9.9.9\n"
    server = served(resolver_of(tmp_path / "said", nodes__pve=said), "pve")
    assert server is not None
    assert server.startswith("https://10.9.9.9:")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("10.0.12.61", 9))
        except OSError:
            pytest.skip("this machine has no way to other networks")
        own = probe.getsockname()[0]
    found = served(resolver_of(tmp_path / "found"), "father")
    assert found is not None
    assert found.startswith(f"https://{own}:")


@pytest.mark.parametrize(("mode", "commands"), [("push", 0), ("pull", 1)])
def test_only_guests_that_pull_fetch_from_the_server_that_the_site_names(
    tmp_path: Path, mode: str, commands: int
) -> None:
    tokens = SEED["secrets.yaml"].replace("    test:", "    web: token-of-web\n    test:")
    resolver = resolver_of(tmp_path, site=SEED["site.yaml"], secrets=tokens)
    context = context_of(resolver, {"name": "web", **VM, "spec": "hard", "execution": {"mode": mode}})
    (vm,) = resolve_manifest(resolver, context.manifest, "father").desired.vms
    assert vm.cloud_init is not None
    assert len(vm.cloud_init.commands) == commands
    assert vm.cloud_init.host_key is not None
