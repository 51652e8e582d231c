"""Images of Kubernetes in machine configurations: found, replaced and kept, in both forms of Talos."""

from __future__ import annotations

import pytest

from stackyard.bootstrap.changes.images import find_image, image_version, keep_images, replace_image
from stackyard.talosconfig.documents import parse_config

CLASSIC = """
version: v1alpha1
machine: {type: controlplane, kubelet: {image: ghcr.io/siderolabs/kubelet:v1.35.0}}
cluster: {apiServer: {image: mirror.example:5000/kube-apiserver:v1.35.0}, proxy: {disabled: true}}
"""
DOCUMENTS = """
version: v1alpha1
machine: {type: controlplane}
---
apiVersion: v1alpha1
kind: KubeletConfig
image: ghcr.io/siderolabs/kubelet:v1.36.0
"""


@pytest.mark.parametrize(("text", "version"), [(CLASSIC, "1.35.0"), (DOCUMENTS, "1.36.0")])
def test_an_image_is_found_in_its_section_or_its_document(text: str, version: str) -> None:
    assert image_version(find_image(parse_config(text), "kubelet")) == version


def test_a_replaced_image_changes_nothing_else_and_not_the_source() -> None:
    source = parse_config(CLASSIC)
    changed = replace_image(source, "kube-apiserver", "other:v1.36.0")
    assert find_image(changed, "kube-apiserver") == "other:v1.36.0"
    assert find_image(source, "kube-apiserver") == "mirror.example:5000/kube-apiserver:v1.35.0"
    assert find_image(changed, "kubelet") == find_image(source, "kubelet")
    assert replace_image(source, "kube-scheduler", "x:v1.36.0").text == source.text


def test_running_images_are_kept_and_missing_ones_are_those_of_the_files() -> None:
    wanted = parse_config(CLASSIC.replace("1.35.0", "1.36.0"))
    running = parse_config("version: v1alpha1\nmachine: {kubelet: {image: 'kubelet:v1.34.9'}}\n")
    kept = keep_images(wanted, running)
    assert find_image(kept, "kubelet") == "kubelet:v1.34.9"
    assert image_version(find_image(kept, "kube-apiserver")) == "1.36.0"


@pytest.mark.parametrize(
    ("image", "version"),
    [("a/b:v1.35.0", "1.35.0"), (f"a/b:v1.35.0@sha256:{'0' * 64}", "1.35.0"), ("a/b:latest", ""), (None, "")],
)
def test_the_version_of_an_image_is_that_of_its_tag(image: str | None, version: str) -> None:
    assert image_version(image) == version
