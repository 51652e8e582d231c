"""Strategic merge: how a patch changes a machine configuration, by the rules of Talos.

Mappings are merged key by key. Lists are appended, except a few that are replaced and a few whose items have
an identity. `$patch: delete` removes a key, an item of a list or a document. An empty text, zero and null
change nothing. A document that is not there yet is added.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import Diagnostics, Kind
from stackyard.talosconfig.deletes import Delete, DeleteError, apply_delete, split_deletes
from stackyard.talosconfig.documents import (
    MAIN,
    DocumentKey,
    MachineConfig,
    Patch,
    key_of,
    name_document,
)
from stackyard.talosconfig.patch_checks import check_patch

if TYPE_CHECKING:
    from stackyard.talosconfig.contract import TalosContract

__all__ = ["apply_patches"]

MISMATCH = Kind(
    code="E-TALOS-PATCH-TYPE",
    summary="A patch has another type of value than the configuration",
    remedy="Give a mapping, a list or a value, as the configuration has it.",
)
NOT_DELETED = Kind(
    code="E-TALOS-PATCH-DELETE",
    summary="A patch deletes something that is not there",
    remedy="Remove the `$patch: delete`, or correct the path above it.",
)

Path = tuple[str, ...]
_SUBNETS: tuple[Path, ...] = (("podSubnets",), ("serviceSubnets",))
# What is replaced as a whole, by the kind of document.
_REPLACED: Mapping[str, tuple[Path, ...]] = {
    MAIN: (
        ("cluster", "network", "podSubnets"),
        ("cluster", "network", "serviceSubnets"),
        ("cluster", "apiServer", "auditPolicy"),
    ),
    "NetworkRuleConfig": (("ingress",), ("portSelector", "ports")),
    "KubeNetworkConfig": _SUBNETS,
    "KubeAuditPolicyConfig": (("configuration",),),
    "KubeAuthenticationConfig": (("configuration",),),
    "KubeCredentialProviderConfig": (("configuration",),),
    "KubeStaticPodConfig": (("pod",),),
    "CRIBaseRuntimeSpecConfig": (("overrides",),),
    "BGPInstanceConfig": (("advertise",), ("importRoutes",), ("neighbors",)),
}
# Lists whose items are merged with the item of the same identity; `*` stands for an item.
_KEYED: Mapping[str, Mapping[Path, tuple[str, ...]]] = {
    MAIN: {
        ("machine", "network", "interfaces"): ("interface", "deviceSelector"),
        ("machine", "network", "interfaces", "*", "vlans"): ("vlanId",),
        ("cluster", "apiServer", "admissionControl"): ("name",),
    },
    "ExtensionServiceConfig": {("configFiles",): ("mountPath",)},
}
# Lists whose item of the same identity is replaced.
_REPLACED_ITEMS: Mapping[str, Mapping[Path, str]] = {"ImageVerificationConfig": {("rules",): "image"}}
# From this release on, an argument of a patch replaces the whole argument.
_REPLACED_ARGUMENTS = 13


def apply_patches(config: MachineConfig, patches: Sequence[Patch], contract: TalosContract) -> MachineConfig:
    """Return a configuration with patches applied, one after the other.

    Raises:
        InvalidInputError: A patch does not fit; every problem is named with its place.
    """
    documents = {key_of(one): copy.deepcopy(dict(one)) for one in config.documents}
    found = Diagnostics()
    for patch in patches:
        check_patch(patch, contract, found)
        if not found.errors:
            _apply(documents, patch, contract, found)
    found.raise_errors("The machine configuration with its patches")
    return MachineConfig(documents=tuple(documents.values()))


def _apply(
    documents: dict[DocumentKey, dict[str, Any]], patch: Patch, contract: TalosContract, found: Diagnostics
) -> None:
    key = key_of(patch.data)
    deletes, rest = split_deletes(patch.data)
    for delete in deletes:
        _delete(documents, key, delete, patch, found)
    if rest is None:
        return
    if key not in documents:
        documents[key] = copy.deepcopy(rest)
        return
    merger = _Merger(key[0], patch, contract, found)
    documents[key] = merger.merge_mapping(documents[key], rest, (), ())


def _delete(
    documents: dict[DocumentKey, dict[str, Any]],
    key: DocumentKey,
    delete: Delete,
    patch: Patch,
    found: Diagnostics,
) -> None:
    where = patch.place(*delete.place)
    if key not in documents:
        found.add(NOT_DELETED, f"There is no document {name_document(key)}.", where)
    elif not delete.path and key[0] == MAIN:
        found.add(NOT_DELETED, "The main document cannot be deleted.", where)
    elif not delete.path:
        del documents[key]
    else:
        try:
            apply_delete(documents[key], delete)
        except DeleteError as err:
            found.add(
                NOT_DELETED, f"`{'.'.join(map(str, delete.path))}` of {name_document(key)}: {err}.", where
            )


class _Merger:
    """Merges the values of one patch document."""

    def __init__(self, kind: str, patch: Patch, contract: TalosContract, found: Diagnostics) -> None:
        self._replaced = _REPLACED.get(kind, ())
        self._keyed = _KEYED.get(kind, {})
        self._replaced_items = _REPLACED_ITEMS.get(kind, {})
        self._patch, self._found = patch, found
        self._has_replaced_arguments = contract.minor >= _REPLACED_ARGUMENTS

    def merge_mapping(
        self, left: Mapping[str, Any], right: Mapping[str, Any], path: Path, place: tuple[Any, ...]
    ) -> dict[str, Any]:
        merged = dict(left)
        is_replaced = self._has_replaced_arguments and path[-1:] == ("extraArgs",)
        for key, value in right.items():
            if is_replaced:
                merged[key] = copy.deepcopy(value)
            else:
                merged[key] = self._merge(left.get(key), value, (*path, str(key)), (*place, key))
        return merged

    def _merge(self, left: Any, right: Any, path: Path, place: tuple[Any, ...]) -> Any:
        if right is None:
            return left
        if left is None or path in self._replaced:
            return copy.deepcopy(right)
        if _shape(left) != _shape(right):
            self._found.add(
                MISMATCH,
                f"`{'.'.join(path)}` is {_shape(left)} in the configuration and {_shape(right)} here.",
                self._patch.place(*place),
            )
            return left
        if isinstance(right, Mapping):
            return self.merge_mapping(left, right, path, place)
        if isinstance(right, list):
            return self._merge_list(left, right, path, place)
        is_empty = not isinstance(right, bool) and right in ("", 0)
        return left if is_empty else right

    def _merge_list(self, left: list[Any], right: list[Any], path: Path, place: tuple[Any, ...]) -> list[Any]:
        replaced = self._replaced_items.get(path)
        names = self._keyed.get(path) or ((replaced,) if replaced else ())
        merged = list(left)
        for index, item in enumerate(right):
            same = _find_same(merged, item, names)
            if same is None:
                merged.append(copy.deepcopy(item))
            elif replaced:
                merged[same] = copy.deepcopy(item)
            else:
                merged[same] = self.merge_mapping(merged[same], item, (*path, "*"), (*place, index))
        return merged


def _find_same(items: list[Any], item: Any, names: Iterable[str]) -> int | None:
    """Return the index of the item with the same value of the first identity that an item has."""
    if not isinstance(item, Mapping):
        return None
    name = next((name for name in names if item.get(name)), None)
    if name is None:
        return None
    return next(
        (at for at, one in enumerate(items) if isinstance(one, Mapping) and one.get(name) == item[name]), None
    )


def _shape(value: Any) -> str:
    if isinstance(value, Mapping):
        return "a mapping"
    return "a list" if isinstance(value, list) else "a single value"
