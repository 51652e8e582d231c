"""The difference between two configurations: complete, and without a secret."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from tests.support.resolved_clusters import make_cluster
from tests.support.talos_bundles import shared_bundle

from stackyard.base.redaction import MASK, Redactor
from stackyard.talosconfig.bundle import make_bundle
from stackyard.talosconfig.difference import difference
from stackyard.talosconfig.documents import MachineConfigError, parse_config
from stackyard.talosconfig.generate import generate_config


def changes(before: str, after: str) -> list[tuple[str, str | None, str | None]]:
    return [
        (one.path, one.before, one.after) for one in difference(parse_config(before), parse_config(after))
    ]


def test_a_configuration_is_the_same_as_itself_however_it_is_written() -> None:
    config = generate_config(make_cluster(Path("/c")), "k8s-1", shared_bundle())
    documents = [yaml.safe_load(part) for part in config.text.split("---\n")]
    again = parse_config(yaml.safe_dump_all(documents, default_flow_style=True))
    assert difference(config, again) == ()


def test_each_value_that_differs_is_named() -> None:
    assert changes(
        "machine: {a: 1, b: {c: x}, d: [1]}", "machine: {a: 2, b: {c: x, e: true}, d: [1, 2]}"
    ) == [
        ("machine.a", "1", "2"),
        ("machine.b.e", None, "true"),
        ("machine.d", "[1]", "[1, 2]"),
    ]


def test_absent_and_empty_are_the_same_and_so_are_a_number_and_its_text() -> None:
    before = "machine: {a: {}, b: [], c: '', d: 1, e: true, g: {h: null}}"
    assert changes(before, "machine: {d: '1', e: 'true', f: null}") == []


def test_documents_are_compared_by_kind_and_name() -> None:
    before = "machine: {a: 1}\n---\nkind: VolumeConfig\nname: STATE\n"
    found = difference(
        parse_config(before), parse_config("machine: {a: 1}\n---\nkind: HostnameConfig\nhostname: a\n")
    )
    assert [(one.document, one.before is None, one.after is None) for one in found] == [
        ("VolumeConfig STATE", False, True),
        ("HostnameConfig", True, False),
    ]


@pytest.mark.parametrize("version", ["1.12.1", "1.14.0"])
def test_no_secret_is_shown(version: str) -> None:
    cluster, bundle = make_cluster(Path("/c"), talos_version=version), make_bundle()
    old = generate_config(cluster, "k8s-1", shared_bundle())
    found = difference(old, generate_config(cluster, "k8s-1", bundle))
    shown = "\n".join(f"{one}" for one in found)
    assert MASK in shown
    redactor = bundle.redactor(shared_bundle().redactor())
    assert not redactor.hides(shown)
    gone = difference(old, parse_config("machine: {}"))
    assert not redactor.hides("\n".join(map(str, gone)))


def test_what_a_redactor_knows_is_masked_too() -> None:
    found = difference(
        parse_config("machine: {a: 1}"), parse_config("machine: {a: hunter-2}"), Redactor(["hunter-2"])
    )
    assert found[0].after == MASK


@pytest.mark.parametrize("text", ["", "- a\n", "a: [\n", "text"])
def test_what_is_no_configuration_is_refused(text: str) -> None:
    with pytest.raises(MachineConfigError):
        parse_config(text)
