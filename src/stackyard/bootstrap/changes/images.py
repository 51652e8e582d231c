"""The images of Kubernetes in a machine configuration: found, and replaced."""

from __future__ import annotations

import copy
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from stackyard.talosconfig.documents import MAIN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.talosconfig.documents import MachineConfig

__all__ = ["COMPONENTS", "KUBELET", "SERVERS", "find_image", "image_version", "keep_images", "replace_image"]

KUBELET = "kubelet"
# In the order in which an upgrade replaces them: nothing may be newer than the API server.
SERVERS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy")
COMPONENTS = (*SERVERS, KUBELET)

# The section of each up to Talos 1.13, and its document from 1.14 on.
_SECTIONS = {
    "kube-apiserver": ("cluster", "apiServer"),
    "kube-controller-manager": ("cluster", "controllerManager"),
    "kube-scheduler": ("cluster", "scheduler"),
    "kube-proxy": ("cluster", "proxy"),
    KUBELET: ("machine", "kubelet"),
}
_KINDS = {
    "kube-apiserver": "KubeAPIServerConfig",
    "kube-controller-manager": "KubeControllerManagerConfig",
    "kube-scheduler": "KubeSchedulerConfig",
    "kube-proxy": "KubeProxyConfig",
    KUBELET: "KubeletConfig",
}
_TAG = re.compile(r":v(\d+\.\d+\.\d+[\w.+-]*)(?:@sha256:[0-9a-f]{64})?$")


def find_image(config: MachineConfig, component: str) -> str | None:
    """Return the image of a component; None where the configuration names none."""
    place = _find(config, component)
    image = None if place is None else place.get("image")
    return str(image) if image else None


def image_version(image: str | None) -> str:
    """Return the version in the tag of an image, without `v`; empty where it has none."""
    found = None if image is None else _TAG.search(image)
    return "" if found is None else found[1]


def replace_image(config: MachineConfig, component: str, image: str) -> MachineConfig:
    """Return a configuration with another image of a component; the same where it has no place for one."""
    made = replace(config, documents=tuple(copy.deepcopy(dict(one)) for one in config.documents))
    place: Any = _find(made, component)
    if place is not None:
        place["image"] = image
    return made


def keep_images(config: MachineConfig, running: MachineConfig) -> MachineConfig:
    """Return a configuration with the Kubernetes images of another one: only an upgrade changes them."""
    for component in COMPONENTS:
        image = find_image(running, component)
        if image is not None:
            config = replace_image(config, component, image)
    return config


def _find(config: MachineConfig, component: str) -> Mapping[str, Any] | None:
    """Return the mapping with the image of a component."""
    document = config.find(_KINDS[component])
    if document is not None:
        return document
    found: Any = config.find(MAIN)
    for key in _SECTIONS[component]:
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else None
