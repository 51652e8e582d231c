"""Guests that fetch their own spec: what their first boot gets, and who may ask for which spec."""

from __future__ import annotations

from pathlib import Path

from tests.support.controller import make_site
from tests.support.site import FULL, write_site
from tests.support.site_store import overwrite

from stackyard.base.serving import make_certificate
from stackyard.desired import CloudInit, Secret
from stackyard.render import render
from stackyard.sources.site.load import Site
from stackyard.sources.site.pull import BOOTSTRAP_PATH, CERTIFICATE, callers
from stackyard.sources.site.resolver import ConfigResolver

PIN = "sha256//" + "A" * 43 + "="


def boot(site: Path, env: str, name: str) -> CloudInit:
    guests = {guest.name: guest for guest in ConfigResolver(site).resolve_desired(env).vms}
    found = guests[name].cloud_init
    assert found is not None
    return found


def settings_of(init: CloudInit) -> str:
    """Return the settings with a mark in the place of a secret."""
    content = next(file.content for file in init.files if file.path == "/etc/stackyard/guest.env")
    parts = (content,) if isinstance(content, str) else content
    return "".join(part if isinstance(part, str) else f"<{part.secret}>" for part in parts)


def test_a_guest_with_a_spec_gets_the_bootstrap_its_name_and_its_token_by_name(tmp_path: Path) -> None:
    site = make_site(tmp_path)
    found = boot(site, "shop", "web1")
    assert settings_of(found) == (
        "STACKYARD_SERVER=https://controller:44443\nSTACKYARD_IDENTITY=web1\nSTACKYARD_PIN=\n"
        "STACKYARD_TOKEN=<auth.node_tokens.web1>\n"
    )
    assert found.commands == (BOOTSTRAP_PATH,)
    assert "curl" in found.packages
    modes = {file.path: file.mode for file in found.files}
    assert modes == {"/etc/stackyard/guest.env": "0600", BOOTSTRAP_PATH: "0755"}
    assert settings_of(boot(site, "shop", "web2")).count("web2") == 2


def test_the_pin_is_that_of_the_certificate_kept_with_the_site(tmp_path: Path) -> None:
    site = make_site(tmp_path)
    kept = make_certificate(["controller"])
    overwrite(site / ".stackyard", CERTIFICATE, kept.certificate_pem)
    assert f"STACKYARD_PIN={kept.pin}\n" in settings_of(boot(site, "shop", "web1"))
    overwrite(site / ".stackyard", CERTIFICATE, b"damaged")
    assert "STACKYARD_PIN=\n" in settings_of(boot(site, "shop", "web1"))
    text = (site / "site.yaml").read_text()
    (site / "site.yaml").write_text(f"{text}  spec_server_pin: {PIN}\n")
    assert f"STACKYARD_PIN={PIN}\n" in settings_of(boot(site, "shop", "web1"))


def test_without_a_server_or_a_spec_there_is_no_bootstrap(tmp_path: Path) -> None:
    plain = boot(make_site(tmp_path / "a", nodes__pve=None), "dev", "test")
    assert (plain.files, plain.commands) == ((), ())
    no_server = boot(write_site(tmp_path / "b", FULL), "shop", "web1")
    assert no_server.files == ()


def test_the_user_data_holds_the_token_as_a_variable_and_never_in_clear(tmp_path: Path) -> None:
    desired = ConfigResolver(make_site(tmp_path)).resolve_desired("shop")
    rendered = render(desired)
    assert "auth.node_tokens.web1" in [variable.secret.secret for variable in rendered.variables]
    text = b"".join(rendered.files.values())
    assert b"stackyard-bootstrap" in text
    assert b"node-token-of-web1" not in text


def test_a_guest_keeps_the_files_and_commands_of_its_own(tmp_path: Path) -> None:
    env = (
        "posture: prod\nnode: father\nvms:\n"
        "  - name: web1\n    spec: web\n    image: debian-12\n    preset: small\n"
        "    cloud_init: {commands: [own command], files: [{path: /own, content: own}]}\n"
    )
    found = boot(make_site(tmp_path, envs__shop=env), "shop", "web1")
    assert found.commands == (BOOTSTRAP_PATH, "own command")
    assert [file.path for file in found.files][-1] == "/own"


def test_whoever_can_ask_is_known_by_the_name_of_the_guest_or_the_spec(tmp_path: Path) -> None:
    manifest = (
        "schema_version: 2\nname: m\nnodes:\n"
        "  - {name: edge, type: vm, spec: open, preset: vm-small, image: debian-12, vmid: 99021}\n"
    )
    found = callers(Site.open(make_site(tmp_path, is_broken=True, manifests__m=manifest)))
    assert {name: caller.specs for name, caller in found.items()} == {
        **{name: (name,) for name in ("base", "open", "staged", "web", "lost", "keyless", "wrong")},
        "web1": ("web",),
        "web2": ("web",),
        "edge": ("open",),
    }


def test_a_secret_stands_for_the_token_of_the_site_too(tmp_path: Path) -> None:
    env = "posture: dev\nnode: pve\nvms:\n  - {name: s1, spec: staged, image: debian-12, preset: small}\n"
    found = boot(make_site(tmp_path, envs__stage=env), "stage", "s1")
    content = next(file.content for file in found.files if file.path.endswith("guest.env"))
    assert Secret(secret="auth.site_token") in content


def test_a_guest_whose_spec_asks_for_a_token_that_is_not_there_is_found_before_any_plan(
    tmp_path: Path,
) -> None:
    env = "posture: dev\nnode: father\nvms:\n  - {name: web9, spec: web, image: debian-12, preset: small}\n"
    site = make_site(tmp_path, envs__shop=env)
    (found,) = Site.open(site).found.errors
    assert (found.kind.code, "node_tokens.web9" in found.detail) == ("E-SITE-TOKEN", True)
    assert found.where is not None
    assert (found.where.path.endswith("envs/shop.yaml"), found.where.line) == (True, 4)


def test_each_of_several_guests_of_a_node_can_ask(tmp_path: Path) -> None:
    node = "{name: web, type: vm, image: debian-12, preset: small, spec: web, count: 2}"
    manifest = f"schema_version: 2\nname: many\nnodes: [{node}]\n"
    found = callers(Site.load(make_site(tmp_path, manifests__many=manifest)))
    assert {name: found[name].specs for name in ("web-1", "web-2")} == {"web-1": ("web",), "web-2": ("web",)}
