"""Reduce what bpg/proxmox declares to the facts that the built-in provider carries.

    tofu providers schema -json > schema.json      (in a folder whose configuration requires bpg/proxmox)
    python -m scripts.generate_provider_facts schema.json rules.json

`rules.json` holds, under `defaults_and_replace_rules`, what the plugin protocol does not tell of the
resources written with the older SDK: defaults, what makes a replacement, which differences are none. No text
of the original is kept. The output is src/stackyard/provider/facts/bpg.json.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

OUT = Path(__file__).parents[1] / "src" / "stackyard" / "provider" / "facts" / "bpg.json"

_PREFIX = "proxmox_virtual_environment_"
# Written with the older SDK; they have one name each.
SDK_RESOURCES = ("pool", "file", "vm", "container")
# Written with the framework; each has a second, shorter name.
FRAMEWORK_RESOURCES = (
    "network_linux_bridge network_linux_vlan sdn_zone_simple sdn_zone_vlan sdn_zone_vxlan sdn_vnet "
    "sdn_subnet sdn_applier download_file haresource harule"
).split()
SDK_DATA_SOURCES = ("nodes", "node", "pool", "pools", "vm", "vms", "container", "containers")
FRAMEWORK_DATA_SOURCES = ("version", "datastores")

_KEPT = ("type", "required", "optional", "computed", "sensitive", "deprecated")


def reduce_block(block: dict[str, Any], rules: dict[str, Any]) -> dict[str, Any]:
    """Return a block without its texts, with the rules of each attribute and nested block in it."""
    reduced: dict[str, Any] = {}
    attributes = block.get("attributes", {})
    if attributes:
        reduced["attributes"] = {
            name: _reduce_attribute(attribute, rules.get(name, {})) for name, attribute in attributes.items()
        }
    blocks = block.get("block_types", {})
    if blocks:
        reduced["blocks"] = {
            name: _reduce_nested(nested, rules.get(name, {})) for name, nested in blocks.items()
        }
    if block.get("deprecated"):
        reduced["deprecated"] = True
    return reduced


def _reduce_attribute(attribute: dict[str, Any], rule: dict[str, Any]) -> dict[str, Any]:
    reduced = {key: attribute[key] for key in _KEPT if attribute.get(key)}
    nested = attribute.get("nested_type")
    if nested:
        reduced["nested"] = {
            "nesting": nested["nesting_mode"],
            "attributes": {
                name: _reduce_attribute(inner, {}) for name, inner in nested["attributes"].items()
            },
        }
    return {**reduced, **_rules(rule)}


def _reduce_nested(nested: dict[str, Any], rule: dict[str, Any]) -> dict[str, Any]:
    reduced: dict[str, Any] = {"nesting": nested["nesting_mode"]}
    reduced |= {key: nested[key] for key in ("min_items", "max_items") if key in nested}
    reduced["block"] = reduce_block(nested["block"], rule.get("block", {}))
    return {**reduced, **_rules(rule)}


def _rules(rule: dict[str, Any]) -> dict[str, Any]:
    reduced: dict[str, Any] = {}
    if "default" in rule:
        reduced["default"] = rule["default"]
    if rule.get("force_new"):
        reduced["replace"] = True
    if rule.get("diff_suppress"):
        reduced["suppress"] = True
    if rule.get("type") == "TypeFloat":
        reduced["fraction"] = True
    return reduced


def facts(schema: dict[str, Any], rules: dict[str, Any]) -> dict[str, Any]:
    """Return the facts of everything that the built-in provider has."""
    (declared,) = schema["provider_schemas"].values()
    sdk = rules["defaults_and_replace_rules"]

    def chosen(kind: str, names: dict[str, bool]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, is_sdk in names.items():
            one = declared[kind][name]
            known = sdk.get(name, {}).get("schema", {}) if is_sdk and kind == "resource_schemas" else {}
            found[name] = {"version": one["version"], **({"sdk": True} if is_sdk else {})}
            found[name]["block"] = reduce_block(one["block"], known)
        return found

    return {
        "provider_version": rules["provider_version"],
        "provider": {"version": 0, "block": reduce_block(declared["provider"]["block"], {})},
        "resources": chosen("resource_schemas", _names(SDK_RESOURCES, tuple(FRAMEWORK_RESOURCES))),
        "data_sources": chosen("data_source_schemas", _names(SDK_DATA_SOURCES, FRAMEWORK_DATA_SOURCES)),
    }


def _names(sdk: tuple[str, ...], framework: tuple[str, ...]) -> dict[str, bool]:
    names = {f"{_PREFIX}{name}": True for name in sdk}
    for name in framework:
        names |= {f"{_PREFIX}{name}": False, f"proxmox_{name}": False}
    return names


def main() -> None:
    """Read both files and write the facts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("schema", type=Path)
    parser.add_argument("rules", type=Path)
    given = parser.parse_args()
    found = facts(json.loads(given.schema.read_text()), json.loads(given.rules.read_text()))
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
