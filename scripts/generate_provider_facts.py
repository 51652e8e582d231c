"""Reduce what bpg/proxmox declares to the facts that the built-in provider carries, of every kind it has.

    tofu providers schema -json > schema.json      (in a folder whose configuration requires bpg/proxmox)
    python -m scripts.generate_provider_facts bpg-schema.json schema.json

The first file has `provider_version`, and `provider`, `resources` and `data_sources` as the plugin protocol
gives them. Under `defaults_and_replace_rules` it has what that does not tell of the resources written with
the older SDK: defaults, what makes a replacement, which differences are none. No text of the original is
kept. The second file adds attributes that the first one lacks: those that are called `description`.

The output, in src/stackyard/bpg_schema, is one file for each kind with all its names, and `wire.msgpack`:
the same schemas as the messages that an engine gets, so that no run has to make them.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path
from typing import Any

import msgpack  # type: ignore[import-untyped]

from stackyard.provider import wire
from stackyard.provider.schema import read_schema

OUT = Path(__file__).parents[1] / "src" / "stackyard" / "bpg_schema"

_LONG, _SHORT = "proxmox_virtual_environment_", "proxmox_"
_KEPT = ("type", "required", "optional", "computed", "sensitive", "deprecated", "write_only")
_SECTIONS = ("resources", "data_sources")


def kind_of(name: str) -> str:
    """Return the name of a kind, which is what its names have in common."""
    # The short name of the newer VM takes the place of the older one.
    if name == "proxmox_vm":
        return "vm2"
    return name.removeprefix(_LONG if name.startswith(_LONG) else _SHORT)


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


def reduce_section(declared: dict[str, Any], section: str) -> dict[str, dict[str, Any]]:
    """Return the facts of all resources, or of all data sources, by kind."""
    rules = declared["defaults_and_replace_rules"] if section == "resources" else {}
    kinds: dict[str, dict[str, Any]] = {}
    for name, one in declared[section].items():
        block = reduce_block(one["block"], rules.get(name, {}).get("schema", {}))
        is_deprecated = block.pop("deprecated", False)
        kind = kinds.setdefault(kind_of(name), {"names": {}, "version": one["version"], "block": block})
        if (kind["version"], kind["block"]) != (one["version"], block):
            raise SystemExit(f"{name} differs from {', '.join(kind['names'])} in more than its name.")
        kind["names"][name] = {"deprecated": True} if is_deprecated else {}
    for kind in kinds.values():
        # Only what is written with the framework has a short name.
        if all(name.startswith(_LONG) for name in kind["names"]):
            kind["sdk"] = True
    return kinds


def write_facts(declared: dict[str, Any], out: Path) -> None:
    """Write the facts of a provider, in place of those that are there."""
    provider = {"version": 0, "block": reduce_block(declared["provider"]["block"], {})}
    _write_json(out / "provider.json", {"provider_version": declared["provider_version"], **provider})
    messages: dict[str, Any] = {"provider": _message(provider)}
    for section in _SECTIONS:
        shutil.rmtree(out / section, ignore_errors=True)
        (out / section).mkdir(parents=True)
        messages[section] = {}
        for kind, known in sorted(reduce_section(declared, section).items()):
            _write_json(out / section / f"{kind}.json", known)
            for name, own in known["names"].items():
                block = {**known["block"], **own}
                messages[section][name] = (kind, _message({"version": known["version"], "block": block}))
    (out / "wire.msgpack").write_bytes(msgpack.packb(messages))


def add_missing(declared: dict[str, Any], schema: dict[str, Any]) -> None:
    """Add the attributes of resources and data sources that only the schema of an engine has."""
    (whole,) = schema["provider_schemas"].values()
    for section, theirs in zip(_SECTIONS, ("resource_schemas", "data_source_schemas"), strict=True):
        for name, one in declared[section].items():
            attributes = whole[theirs][name]["block"].get("attributes", {})
            one["block"]["attributes"] = {**attributes, **one["block"].get("attributes", {})}


def _message(facts: dict[str, Any]) -> bytes:
    data: bytes = wire.schema_message(read_schema(facts, {})).SerializeToString(deterministic=True)
    return data


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n")


def main() -> None:
    """Read the file and write the facts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("declared", type=Path)
    parser.add_argument("schema", type=Path)
    given = parser.parse_args()
    declared = json.loads(given.declared.read_text())
    add_missing(declared, json.loads(given.schema.read_text()))
    write_facts(declared, OUT)


if __name__ == "__main__":
    main()
