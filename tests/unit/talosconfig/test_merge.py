"""Strategic merge: mappings merge, lists append or replace, and directives delete."""

from __future__ import annotations

from typing import Any

import pytest

from stackyard.base.errors import InvalidInputError
from stackyard.talosconfig.contract import TalosContract
from stackyard.talosconfig.documents import MachineConfig, parse_config
from stackyard.talosconfig.merge import apply_patches
from stackyard.talosconfig.patch_files import parse_patches

BASE = """\
version: v1alpha1
machine:
  type: controlplane
  certSANs: [a]
  sysctls: {one: "1"}
  network:
    interfaces:
      - interface: eth0
        addresses: [10.0.0.1/24]
        vlans:
          - vlanId: 10
            addresses: [10.1.0.1/24]
      - deviceSelector: {hardwareAddr: aa}
        mtu: 1500
cluster:
  network:
    podSubnets: [10.42.0.0/16]
  apiServer:
    admissionControl:
      - name: PodSecurity
        configuration: {kind: x}
    auditPolicy: {rules: [{level: Metadata}]}
  proxy: {disabled: true}
---
apiVersion: v1alpha1
kind: HostnameConfig
auto: "off"
hostname: k8s-1
---
apiVersion: v1alpha1
kind: VolumeConfig
name: STATE
"""


def merge(*patches: str, minor: int = 12) -> MachineConfig:
    read = [one for text in patches for one in parse_patches(text, "patch.yaml")]
    return apply_patches(parse_config(BASE), read, TalosContract(minor))


def main(*patches: str) -> Any:
    return merge(*patches).documents[0]


def problems(*patches: str, minor: int = 12) -> list[tuple[str, str]]:
    with pytest.raises(InvalidInputError) as caught:
        merge(*patches, minor=minor)
    return [(one.kind.code, str(one.where)) for one in caught.value.diagnostics]


def test_mappings_merge_and_lists_append() -> None:
    merged = main('machine: {certSANs: [b, a], sysctls: {two: "2"}}')
    assert merged["machine"]["certSANs"] == ["a", "b", "a"]
    assert merged["machine"]["sysctls"] == {"one": "1", "two": "2"}
    assert merged["cluster"] == parse_config(BASE).documents[0]["cluster"]


def test_subnets_and_the_audit_policy_are_replaced() -> None:
    merged = main(
        "cluster: {network: {podSubnets: [10.9.0.0/16]}, apiServer: {auditPolicy: {rules: [{level: None}]}}}"
    )
    assert merged["cluster"]["network"]["podSubnets"] == ["10.9.0.0/16"]
    assert merged["cluster"]["apiServer"]["auditPolicy"] == {"rules": [{"level": "None"}]}


def test_interfaces_vlans_and_plugins_merge_by_their_identity() -> None:
    merged = main(
        """
machine:
  network:
    interfaces:
      - interface: eth0
        mtu: 9000
        vlans: [{vlanId: 10, mtu: 1400}, {vlanId: 11}]
      - deviceSelector: {hardwareAddr: aa}
        dhcp: false
      - interface: lo
cluster: {apiServer: {admissionControl: [{name: PodSecurity, configuration: {more: 1}}, {name: Other}]}}
"""
    )
    first, second, third = merged["machine"]["network"]["interfaces"]
    assert (first["mtu"], [one["vlanId"] for one in first["vlans"]]) == (9000, [10, 11])
    assert first["vlans"][0] == {"vlanId": 10, "addresses": ["10.1.0.1/24"], "mtu": 1400}
    assert second == {"deviceSelector": {"hardwareAddr": "aa"}, "mtu": 1500, "dhcp": False}
    assert third == {"interface": "lo"}
    plugins = merged["cluster"]["apiServer"]["admissionControl"]
    assert plugins == [{"name": "PodSecurity", "configuration": {"kind": "x", "more": 1}}, {"name": "Other"}]


def test_empty_values_change_nothing_and_false_does() -> None:
    merged = main("machine: {type: '', sysctls: null, certSANs: []}\ncluster: {proxy: {disabled: false}}")
    assert merged["machine"] == parse_config(BASE).documents[0]["machine"]
    assert merged["cluster"]["proxy"] == {"disabled": False}


def test_a_directive_deletes_keys_items_and_documents() -> None:
    merged = merge(
        """
machine:
  sysctls: {$patch: delete}
  network:
    interfaces: [{interface: eth0, $patch: delete}]
---
apiVersion: v1alpha1
kind: VolumeConfig
name: STATE
$patch: delete
"""
    )
    machine: Any = merged.documents[0]["machine"]
    assert "sysctls" not in machine
    assert [one.get("interface") for one in machine["network"]["interfaces"]] == [None]
    assert merged.find("VolumeConfig", "STATE") is None


def test_a_directive_deletes_and_its_siblings_merge() -> None:
    merged = main("cluster: {apiServer: {admissionControl: {$patch: delete}, extraArgs: {v: '4'}}}")
    assert merged["cluster"]["apiServer"]["extraArgs"] == {"v": "4"}
    assert "admissionControl" not in merged["cluster"]["apiServer"]


def test_documents_merge_by_kind_and_name_or_are_added() -> None:
    merged = merge(
        "apiVersion: v1alpha1\nkind: HostnameConfig\nhostname: other\n"
        "---\napiVersion: v1alpha1\nkind: VolumeConfig\nname: EPHEMERAL\n"
    )
    host = merged.find("HostnameConfig")
    assert host is not None
    assert (host["auto"], host["hostname"]) == ("off", "other")
    assert [str(one.get("name")) for one in merged.documents[2:]] == ["STATE", "EPHEMERAL"]


def test_later_patches_win_and_the_configuration_itself_stays() -> None:
    config = parse_config(BASE)
    before = config.text
    read = [parse_patches(f"machine: {{type: {name}}}", "p.yaml")[0] for name in ("one", "two")]
    merged: Any = apply_patches(config, read, TalosContract(12)).documents[0]
    assert merged["machine"]["type"] == "two"
    assert config.text == before


def test_words_and_numbers_stay_as_they_are_written() -> None:
    patch = "machine: {sysctls: {a: off, b: 0644, c: 1:30, d: 2020-01-01, e: 1.50, f: 0o17, g: 'no', h: 12}}"
    text = merge(patch).text
    written = dict(line.strip().split(": ", 1) for line in text.splitlines() if ": " in line)
    assert [written[key] for key in "abcdefgh"] == [
        *("off", "0644", "1:30", "2020-01-01", "1.50", "0o17", "'no'", "12")
    ]


def test_arguments_replace_from_1_13_on() -> None:
    first = "cluster: {apiServer: {extraArgs: {a: [x]}}}"
    second = "cluster: {apiServer: {extraArgs: {a: [y]}}}"
    for minor, expected in ((12, ["x", "y"]), (13, ["y"])):
        document: Any = merge(first, second, minor=minor).documents[0]
        assert document["cluster"]["apiServer"]["extraArgs"] == {"a": expected}


@pytest.mark.parametrize(
    ("patch", "code", "line"),
    [
        ("machine:\n  sysctl: {a: '1'}", "E-TALOS-PATCH-KEY", 2),
        ("machines: {}", "E-TALOS-PATCH-KEY", 1),
        ("cluster:\n  apiserver: {}", "E-TALOS-PATCH-KEY", 2),
        ("machine:\n  certSANs: {a: b}", "E-TALOS-PATCH-TYPE", 2),
        ("machine:\n  network: x", "E-TALOS-PATCH-TYPE", 2),
        ("machine:\n  type: [a]", "E-TALOS-PATCH-TYPE", 2),
        ("machine:\n  files:\n    a: {$patch: delete}", "E-TALOS-PATCH-DELETE", 3),
        ("machine:\n  certSANs:\n    - {$patch: delete}", "E-TALOS-PATCH-DELETE", 3),
        ("$patch: delete", "E-TALOS-PATCH-DELETE", 1),
        ("machine:\n  sysctls: {$patch: replace}", "E-TALOS-PATCH-DIRECTIVE", 2),
        ("machine:\n  network:\n    hostname: x", "E-TALOS-PATCH-CONFLICT", 3),
        ("apiVersion: v1alpha1\nkind: EnvironmentConfig", "E-TALOS-PATCH-KIND", 2),
        ("apiVersion: v1alpha1\nkind: HostnamConfig", "E-TALOS-PATCH-KIND", 2),
        ("kind: HostnameConfig", "E-TALOS-PATCH-KIND", 1),
        ("apiVersion: v1alpha1\nkind: VolumeConfig\nname: x\n$patch: delete", "E-TALOS-PATCH-DELETE", 1),
    ],
)
def test_a_patch_that_does_not_fit_is_named_by_its_line(patch: str, code: str, line: int) -> None:
    assert [(found, int(place.split(":")[1])) for found, place in problems(patch)] == [(code, line)]


def test_all_problems_are_named_at_once() -> None:
    assert len(problems("machine: {a: 1, b: 2}", "cluster: {c: 3}")) == 3


def test_a_document_of_a_later_release_is_accepted_there() -> None:
    patch = "apiVersion: v1alpha1\nkind: EnvironmentConfig\nvariables: {a: b}"
    assert merge(patch, minor=13).find("EnvironmentConfig") is not None


def test_a_switch_that_moved_into_a_document_is_refused_on_and_off() -> None:
    for value in ("true", "false"):
        found = problems(f"cluster: {{allowSchedulingOnControlPlanes: {value}}}", minor=14)
        assert [code for code, _ in found] == ["E-TALOS-PATCH-CONFLICT"]
