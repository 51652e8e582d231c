"""Tokens and passwords in a file of `hypervisors/`: no resources, and all that is wrong is found."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.site import SEED, findings, write_site

from stackyard.path.environment import NoTokenError
from stackyard.path.hypervisor import HypervisorSource
from stackyard.render import render
from stackyard.sources.site import ConfigResolver

GOOD = """\
users:
  terraform@pve: {comment: OpenTofu}
  anna@pve: {password: {secret: passwords.vm_root}}
tokens:
  terraform@pve!provider: {privileges_separation: false, store: home}
  anna@pve!ci: {expiration_date: "2030-01-01T00:00:00+01:00"}
acl:
  - {path: /, user_id: terraform@pve, role_id: Administrator}
  - {path: /vms, token_id: anna@pve!ci, role_id: PVEAuditor, propagate: false}
"""
BAD = """\
realms:
  corp: {type: ldap, server1: ldap.corp, base_dn: dc=corp, user_attr: uid}
users:
  bert@corp: {password: {secret: passwords.bert}}
tokens:
  a@pve!x1: {privileges_separation: false}
  b@pve!x1: {}
acl:
  - {path: /, token_id: a@pve!x1, role_id: PVEAuditor}
"""


def test_tokens_passwords_and_roles_of_tokens_become_no_resources(tmp_path: Path) -> None:
    root = write_site(tmp_path, {**SEED, "hypervisors/home.yaml": "api: pve\n" + GOOD})
    resolved = HypervisorSource(ConfigResolver(root)).resolve("home", None)
    wanted = resolved.desired.credentials
    assert [(one.id, one.store, one.separates, one.expires) for one in wanted.tokens] == [
        ("terraform@pve!provider", "home", False, 0),
        ("anna@pve!ci", "ci", True, 1893452400),
    ]
    assert [(one.user, one.name) for one in wanted.passwords] == [("anna@pve", "passwords.vm_root")]
    assert [(one.token, one.path, one.propagate) for one in wanted.grants] == [("anna@pve!ci", "/vms", False)]
    text = b"".join(render(resolved.desired).files.values()).decode()
    assert "anna@pve" in text
    assert "terraform@pve" in text
    assert not [word for word in ("password", "user_token", "!provider", "!ci") if word in text]


def test_every_defect_is_found_at_its_place(tmp_path: Path) -> None:
    other = 'api: pve\ntokens:\n  bad: {}\n  c@pve!yy: {expiration_date: soon, store: "a b"}\n'
    root = write_site(tmp_path, {**SEED, "hypervisors/home.yaml": BAD, "hypervisors/other.yaml": other})
    found = [(one.kind.code, str(one.where).rpartition("hypervisors/")[2]) for one in findings(root)]
    assert found == [
        ("E-SITE-PASSWORD-REALM", "home.yaml:4:25"),
        ("E-HYPERVISOR-SECRET", "home.yaml:4:34"),
        ("E-SITE-TOKEN-STORE", "home.yaml:7:13"),
        ("E-SITE-TOKEN-ROLE", "home.yaml:9:5"),
        ("W-HYPERVISOR-NAME", "home.yaml:9:25"),
        ("E-SITE-VALUE", "other.yaml:3:8"),
        ("E-SITE-VALUE", "other.yaml:4:31"),
        ("E-SITE-VALUE", "other.yaml:4:44"),
    ]


def test_a_cluster_without_a_token_says_which_command_makes_it(tmp_path: Path) -> None:
    files = {
        **SEED,
        "hypervisors/home.yaml": GOOD,
        "nodes/pve.yaml": SEED["nodes/pve.yaml"].replace("api_token: pve", "api_token: none"),
    }
    root = write_site(tmp_path, files)
    with pytest.raises(NoTokenError) as caught:
        HypervisorSource(ConfigResolver(root)).resolve("home", "pve")
    assert "stackyard apply hypervisor:home --login root@pam" in caught.value.remedy
