"""Backups, firewalls and replications of guests, held against the rest of the site."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from tests.support.pages import ROOT
from tests.support.site import findings, write_site

from stackyard.desired import Desired
from stackyard.sources.site import ConfigResolver
from stackyard.sources.site.explain import explain_env

CLUSTER = """\
storages: {nas: {type: nfs, server: 192.0.2.5, export: /tank, content: [backup]}}
pools: {nightly: {}}
backups:
  nightly: {schedule: "22:30", storage: nas, pool: nightly}
  weekly: {schedule: "sat 4:00", storage: nas, vmid: ["99900"]}
  elsewhere: {schedule: "daily", storage: nas, pool: nightly, node: father}
firewall:
  aliases: {office: 192.0.2.0/24}
  ipsets: {trusted: [10.0.0.0/8]}
  groups: {web: [{type: in, action: ACCEPT, macro: HTTP}]}
"""
HEAD = "posture: dev\nvmid_base: 99900\nvms:\n  - name: test\n    template: test\n"
CARD = "    nics: [{firewall: true}]\n"


def said(tmp_path: Path, more: str, *, hypervisor: str | None = CLUSTER) -> list[str]:
    """Return what is found in an env of one guest: code and line of each."""
    files = {} if hypervisor is None else {"hypervisors__home": hypervisor}
    found = findings(write_site(tmp_path, envs__dev=f"{HEAD}{more}", **files))
    return [f"{one.kind.code} {one.where.line if one.where else ''}" for one in found]


def built(tmp_path: Path, more: str, hypervisor: str = CLUSTER) -> Desired:
    folder = write_site(tmp_path, envs__dev=f"{HEAD}{more}", hypervisors__home=hypervisor)
    return ConfigResolver(folder).resolve_desired("dev", "pve")


def test_a_guest_joins_the_pool_of_the_job_that_it_names(tmp_path: Path) -> None:
    [vm] = built(tmp_path, "    backup: nightly\n").vms
    assert (vm.pool, vm.disks[0].backup) == ("nightly", True)
    [vm] = built(tmp_path, "    backup: [nightly, weekly]\n").vms
    assert vm.pool == "nightly"
    assert said(tmp_path, "    pool: nightly\n    backup: true\n") == []


@pytest.mark.parametrize(
    ("more", "wanted"),
    [
        ("backup: nightli", ["E-SITE-BACKUP-JOB 6"]),
        # A job of another node does not run for this one, and a guest is in one pool.
        ("backup: [elsewhere]", ["E-SITE-BACKUP 6"]),
        ("{pool: mine, backup: nightly}", ["E-SITE-BACKUP 6"]),
        ("backup: weekly", []),
        ("{vmid: 100, backup: weekly}", ["E-SITE-BACKUP 6"]),
        ("{vmid: 100, backup: true}", ["E-SITE-BACKUP 6"]),
        ("{backup: false, disks: [{backup: true}]}", ["E-SITE-BACKUP-DISK 6"]),
        ("backup: 5", ["E-SITE-VALUE 6"]),
    ],
)
def test_a_job_that_does_not_take_a_guest_is_refused(tmp_path: Path, more: str, wanted: list[str]) -> None:
    inside = more.removeprefix("{").removesuffix("}") if more.startswith("{") else more
    lines = inside.split(", ", 1) if more.startswith("{") else [inside]
    text = f"{HEAD}    {lines[-1]}\n" + "".join(f"    {line}\n" for line in lines[:-1])
    found = findings(write_site(tmp_path, envs__dev=text, hypervisors__home=CLUSTER))
    assert [one.kind.code for one in found] == [one.partition(" ")[0] for one in wanted]


def test_a_guest_without_backups_has_none_of_its_disks_in_them(tmp_path: Path) -> None:
    [vm] = built(tmp_path, "    backup: false\n    disks: [{}, {size_gib: 5}]\n").vms
    assert [disk.backup for disk in vm.disks] == [False, False]
    box = "    type: ct\n    image: local:vztmpl/debian.tar.zst\n    backup: false\n"
    assert said(tmp_path, box) == ["E-SITE-BACKUP-ROOT 8"]
    everything = "backups: {all: {schedule: daily, storage: local, all: true}}\n"
    assert said(tmp_path, box, hypervisor=everything) == ["E-SITE-BACKUP-ROOT 8"]
    assert said(tmp_path, box, hypervisor="pools: {a: {}}\n") == []


def test_without_a_job_anywhere_backups_are_not_known(tmp_path: Path) -> None:
    assert said(tmp_path, "    backup: true\n", hypervisor=None) == ["W-SITE-BACKUP-UNKNOWN 6"]
    off = CLUSTER.replace("pool: nightly}", "pool: nightly, enabled: false}", 1)
    assert said(tmp_path, "    backup: nightly\n", hypervisor=off) == ["W-SITE-BACKUP-OFF 6"]


def test_names_that_neither_the_guest_nor_a_cluster_has_are_warnings(tmp_path: Path) -> None:
    rules = """\
    firewall:
      aliases: {mine: 10.0.0.1}
      ipsets: {peers: [dc/office, dc/ofice]}
      rules:
        - {security_group: web}
        - {security_group: wbe}
        - {type: in, action: ACCEPT, source: office, dest: mine}
        - {type: in, action: ACCEPT, source: +dc/trusted, dest: +peers}
        - {type: in, action: ACCEPT, source: dc/mine2, dest: +dc/trust}
"""
    found = said(tmp_path, CARD + rules)
    assert found == [f"W-SITE-FIREWALL-NAME {line}" for line in (9, 12, 15, 15)]


def test_a_firewall_without_a_card_behind_it_is_a_warning(tmp_path: Path) -> None:
    assert said(tmp_path, "    firewall: {}\n") == ["W-SITE-FIREWALL-CARD 6"]
    assert said(tmp_path, "    firewall: {options: {enabled: false}}\n") == []
    assert said(tmp_path, f"{CARD}    firewall: {{}}\n") == []


def test_everything_wrong_is_found_at_its_line_at_once(tmp_path: Path) -> None:
    wrong = """\
    firewall:
      options: {input_policy: ALLOW, dchp: true}
      rules:
        - {type: in, action: ACCEPT, macro: shh}
        - {type: in, action: ACCEPT, proto: tcp, dport: 8000-9000}
        - {type: in, action: ACCEPT, source: 10.0.0.1/8}
        - action: DROP
      aliases: {office: 10.0.0.0/33}
    replication:
      - {target: father, schedule: "*-2-30"}
      - {target: father, rate: 0}
"""
    lines = [7, 7, 9, 10, 11, 12, 13, 15, 16]
    assert [int(one.split()[1]) for one in said(tmp_path, wrong)] == lines
    assert said(tmp_path, "    replication: {target: pve}\n    node: pve\n") == ["E-SITE-CONTRADICTION 6"]


def test_a_template_has_rules_and_each_guest_its_own_options(tmp_path: Path) -> None:
    template = (
        "preset: small\nimage: debian-12\nfirewall: {rules: [{type: in, action: ACCEPT, macro: SSH}]}\n"
    )
    own = f"{CARD}    firewall: {{options: {{input_policy: REJECT}}}}\n    replication: father\n"
    folder = write_site(tmp_path, envs__dev=f"{HEAD}{own}", vms__test=template)
    resolver = ConfigResolver(folder)
    [vm] = resolver.resolve_desired("dev", "pve").vms
    assert vm.firewall is not None
    assert ([rule.macro for rule in vm.firewall.rules], vm.firewall.options.input_policy) == (
        ["SSH"],
        "REJECT",
    )
    assert [job.target for job in vm.replication] == ["father"]
    shown = [one for one in explain_env(resolver, "dev", "pve") if one.key in ("firewall", "replication")]
    assert [one.where.path for one in shown if one.where is not None] == [str(folder / "envs/dev.yaml")] * 2


def test_the_page_shows_what_a_site_takes(tmp_path: Path) -> None:
    page = (ROOT / "docs/howto/protect-guests.md").read_text()
    files = dict(re.findall(r"```yaml\n# ([a-z/]+)\.yaml\n(.*?)```", page, re.DOTALL))
    assert sorted(files) == ["envs/web", "hypervisors/home"]
    env = yaml.safe_load(files["envs/web"].replace("pve1", "pve"))
    changed = {"envs__dev": yaml.safe_dump(env), "hypervisors__home": files["hypervisors/home"]}
    assert findings(write_site(tmp_path, **changed)) == []


RULES = """\
    firewall:
      aliases: {office: 192.0.2.0/24, mine: 198.51.100.0/24}
      ipsets: {peers: [198.51.100.0/25, {name: 198.51.100.9, nomatch: true}]}
      rules:
        - {type: in, action: DROP, source: guest/mine}
        - {type: in, action: ACCEPT, macro: SSH, source: +guest/peers}
        - {type: in, action: ACCEPT, macro: SSH, source: office}
        - {security_group: web}
        - {type: in, action: ACCEPT, proto: tcp, dport: "80"}
        - {type: out, action: DROP, enabled: false}
        - {type: out, action: ACCEPT}
        - {type: in, action: DROP, proto: tcp}
        - {type: in, action: ACCEPT, macro: HTTPS}
        - {security_group: web}
"""


def test_rules_of_a_guest_that_are_never_reached_are_named(tmp_path: Path) -> None:
    assert said(tmp_path, f"{CARD}{RULES}") == [
        "E-HYPERVISOR-RULE-ORDER 12",
        "W-HYPERVISOR-RULE-REPEATED 15",
        "E-HYPERVISOR-RULE-ORDER 19",
        "W-HYPERVISOR-RULE-REPEATED 20",
    ]


@pytest.mark.parametrize(
    "more",
    [
        'replication: {target: uncle, schedule: "2020-01-01"}',
        'replication: [uncle, {target: aunt, schedule: "2020-1-1 3:00"}]',
    ],
)
def test_a_replication_whose_time_is_over_never_runs(tmp_path: Path, more: str) -> None:
    assert said(tmp_path, f"    {more}\n") == ["E-HYPERVISOR-SCHEDULE 6"]
