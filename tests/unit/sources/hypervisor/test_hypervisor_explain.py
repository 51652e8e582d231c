"""`stackyard explain hypervisor:NAME`: every value with its file and line, secrets masked."""

from __future__ import annotations

from pathlib import Path

from tests.support.cli import stackyard
from tests.support.hypervisors import SITE
from tests.support.site import write_site

HOME = """\
api: pve1
storages:
  smb: {type: cifs, server: 192.0.2.9, share: a, username: u, password: {secret: passwords.smb}}
roles: {Op: [VM.Audit, VM.Console]}
firewall:
  options: {enabled: true}
  rules:
    - {type: in, action: ACCEPT, macro: SSH}
"""


def test_each_value_has_its_file_and_line_and_secrets_are_masked(tmp_path: Path) -> None:
    write_site(tmp_path, {**SITE, "hypervisors/home.yaml": HOME})
    ended = stackyard("explain", "hypervisor:home", "--site", str(tmp_path), "--json")
    assert ended.status == 0, ended.stderr
    document = ended.document
    values = {
        (one["section"], one["key"]): (one["value"], f"{Path(one['file']).name}:{one['line']}")
        for one in document["values"]
    }
    assert values["cluster", "api"] == ("pve1", "home.yaml:1")
    assert values["storage smb", "server"] == ("192.0.2.9", "home.yaml:3")
    assert values["storage smb", "password"] == ("********", "home.yaml:3")
    assert values["role Op", "privileges"] == (["VM.Audit", "VM.Console"], "home.yaml:4")
    assert values["firewall options", "enabled"] == (True, "home.yaml:6")
    assert values["firewall rules", "rules[0].macro"] == ("SSH", "home.yaml:8")
    assert len(document["desired"]["objects"]) == 4
    text = stackyard("explain", "hypervisor:home", "--site", str(tmp_path)).stdout
    assert "role Op" in text
    assert "home.yaml:4" in text
    assert "secret-value" not in ended.stdout + text


def test_what_is_for_envs_alone_is_refused(tmp_path: Path) -> None:
    write_site(tmp_path, {**SITE, "hypervisors/home.yaml": HOME})
    for words in (("hypervisor:home", "--tfvars"), ("stack:home",)):
        ended = stackyard("explain", *words, "--site", str(tmp_path))
        assert ended.status == 64, ended.stderr


def test_the_site_counts_and_lists_the_files(tmp_path: Path) -> None:
    write_site(tmp_path, {**SITE, "hypervisors/home.yaml": HOME})
    assert stackyard("site", "list", "hypervisors", "--site", str(tmp_path)).stdout.split() == ["home"]
    assert "1 hypervisor" in stackyard("site", "validate", "--site", str(tmp_path)).stdout
