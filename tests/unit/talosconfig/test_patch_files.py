"""The user's patches: where they are, in which order, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.resolved_clusters import make_cluster, make_node
from tests.support.secrets import RECIPIENT
from tests.support.talos_bundles import make_keyring, shared_bundle

from stackyard.base.errors import InvalidInputError
from stackyard.bootstrap.changes.images import KUBELET, replace_image
from stackyard.secrets.base import SecretsLockedError
from stackyard.secrets.create import create_sops_file
from stackyard.talosconfig.difference import difference
from stackyard.talosconfig.generate import generate_config
from stackyard.talosconfig.patch_files import list_patch_files, load_patches, parse_patches

PATCH = "machine: {certSANs: [x]}\n"


def write(folder: Path, *names: str, text: str = PATCH) -> None:
    for name in names:
        path = folder / "talos" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def names(folder: Path, *, is_controller: bool = True) -> list[str]:
    node = make_node(1, is_controller=is_controller)
    return [str(path.relative_to(folder / "talos")) for path in list_patch_files(folder, node)]


def problems(folder: Path) -> list[tuple[str, str]]:
    with pytest.raises(InvalidInputError) as caught:
        load_patches(folder, make_node(1), make_keyring(folder))
    return [(one.kind.code, str(one.where)) for one in caught.value.diagnostics]


def test_patches_apply_from_all_nodes_to_one(tmp_path: Path) -> None:
    write(tmp_path, "patches/k8s-1/a.yaml", "patches/controller/b.yaml", "patches/worker/c.yaml")
    write(tmp_path, "patches/global/e.yml", "patches/global/d.yaml", "patches/global/README.md")
    write(tmp_path, "patches/k8s-2/a.yaml")
    assert names(tmp_path) == [
        *(
            "patches/global/d.yaml",
            "patches/global/e.yml",
            "patches/controller/b.yaml",
            "patches/k8s-1/a.yaml",
        )
    ]
    assert names(tmp_path, is_controller=False)[2] == "patches/worker/c.yaml"


def test_the_folders_of_topf_are_found(tmp_path: Path) -> None:
    write(tmp_path, "all/01-a.yaml", "control-plane/02-b.yaml", "worker/03-c.yaml", "node/k8s-1/04-d.yaml")
    assert names(tmp_path) == ["all/01-a.yaml", "control-plane/02-b.yaml", "node/k8s-1/04-d.yaml"]


def test_no_folder_is_no_patch(tmp_path: Path) -> None:
    assert load_patches(tmp_path, make_node(1)) == ()


def test_a_patch_may_have_several_documents_and_empty_ones(tmp_path: Path) -> None:
    write(
        tmp_path,
        "all/a.yaml",
        text="---\n# nothing\n---\nmachine: {}\n---\napiVersion: v1alpha1\nkind: OOMConfig\n",
    )
    write(tmp_path, "all/b.yaml", text="# only a comment\n")
    found = load_patches(tmp_path, make_node(1), make_keyring(tmp_path))
    assert [one.data.get("kind") for one in found] == [None, "OOMConfig"]


def test_a_patch_may_be_encrypted(tmp_path: Path) -> None:
    path = tmp_path / "talos/all/registry.sops.yaml"
    path.parent.mkdir(parents=True)
    create_sops_file(path, b"machine: {certSANs: [secret-name]}\n", [RECIPIENT])
    found = load_patches(tmp_path, make_node(1), make_keyring(tmp_path))
    assert found[0].data == {"machine": {"certSANs": ["secret-name"]}}
    with pytest.raises(SecretsLockedError):
        load_patches(tmp_path, make_node(1), make_keyring(tmp_path, has_key=False))


def test_a_json_patch_is_refused_with_the_reason(tmp_path: Path) -> None:
    write(tmp_path, "all/a.yaml", text="# from before\n- op: add\n  path: /machine\n  value: {}\n")
    write(tmp_path, "all/b.yaml", text='[{"op": "remove", "path": "/cluster"}]\n')
    folder = tmp_path / "talos/all"
    assert problems(tmp_path) == [
        ("E-TALOS-PATCH-JSON", f"{folder / 'a.yaml'}:2:1"),
        ("E-TALOS-PATCH-JSON", f"{folder / 'b.yaml'}:1:1"),
    ]


def test_a_template_is_refused_and_not_passed_over(tmp_path: Path) -> None:
    write(tmp_path, "all/a.yaml.tpl", "all/b.yaml.j2")
    assert [code for code, _ in problems(tmp_path)] == ["E-TALOS-PATCH-TEMPLATE"] * 2


def test_what_is_no_yaml_is_named_by_its_line(tmp_path: Path) -> None:
    write(tmp_path, "all/a.yaml", text="machine:\n  a: [1\n")
    write(tmp_path, "all/b.yaml", text="just text\n")
    found = problems(tmp_path)
    assert [code for code, _ in found] == ["E-TALOS-PATCH-SYNTAX"] * 2
    assert found[0][1].startswith(f"{tmp_path}/talos/all/a.yaml:")


def test_anchors_and_merge_keys_are_followed() -> None:
    (patch,) = parse_patches(
        "machine:\n  sysctls: &a {x: '1', y: '2'}\n  sysfs: {<<: *a, y: '3'}\n", "patch.yaml"
    )
    assert patch.data["machine"]["sysfs"] == {"y": "3", "x": "1"}


def test_places_are_those_of_keys_and_items() -> None:
    (patch,) = parse_patches("machine:\n  certSANs:\n    - a\n    - b\n", "patch.yaml")
    assert str(patch.place("machine", "certSANs")) == "patch.yaml:2:3"
    assert str(patch.place("machine", "certSANs", 1)) == "patch.yaml:4:7"
    assert str(patch.place("machine", "unknown")) == "patch.yaml:1:1"


def test_what_is_encrypted_in_a_patch_is_hidden_wherever_the_configuration_is_shown(tmp_path: Path) -> None:
    url = "grpc://omni.example?jointoken=abcdef0123"
    path = tmp_path / "talos/all/link.sops.yaml"
    path.parent.mkdir(parents=True)
    document = f"apiVersion: v1alpha1\nkind: SideroLinkConfig\napiUrl: {url}\n"
    create_sops_file(path, document.encode(), [RECIPIENT])
    write(tmp_path, "all/names.yaml", text="machine: {certSANs: [in-clear.example]}\n")
    patches = load_patches(tmp_path, make_node(1), make_keyring(tmp_path))
    config = generate_config(make_cluster(tmp_path), "k8s-1", shared_bundle(), patches)
    without = generate_config(make_cluster(tmp_path), "k8s-1", shared_bundle())
    # Images are replaced in it before it is compared.
    image = replace_image(config, KUBELET, "ghcr.io/siderolabs/kubelet:v1.36.0")
    shown = str([difference(without, config, one.redactor) for one in (config, image)])
    assert url in config.text
    assert url not in shown
    assert "in-clear.example" in shown
