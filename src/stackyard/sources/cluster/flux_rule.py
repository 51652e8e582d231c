"""How the Secrets of Kubernetes are encrypted, so that Flux can read what kind of object each one is."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.secrets.sops.rules import PathRule

__all__ = ["FLUX_RULE", "hides_object"]

# The rule of `.sops.yaml`, without the recipients.
FLUX_RULE: Mapping[str, str | bool] = MappingProxyType(
    {
        "path_regex": r"kubernetes/.*\.sops\.ya?ml",
        "encrypted_regex": "^(data|stringData)$",
        "mac_only_encrypted": True,
    }
)
# Flux reads them before it decrypts the object.
_OBJECT = (("apiVersion",), ("kind",), ("metadata", "name"))


def hides_object(rule: PathRule) -> bool:
    """Return whether a rule encrypts what Flux has to read before it decrypts a manifest."""
    return any(rule.encrypts(path, is_marked=False) for path in _OBJECT)
