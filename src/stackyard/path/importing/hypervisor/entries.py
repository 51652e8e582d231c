"""An object as the provider reads it, in the words that a person would write for it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.provider.schema import UNSET, Nesting
from stackyard.provider.values import is_zero
from stackyard.sources.hypervisor.models import list_attributes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.path.importing.hypervisor.lists import Listing
    from stackyard.provider.schema import Attribute, Block, Nested, Schema
    from stackyard.provider.values import Object
    from stackyard.sources.hypervisor.sections import Section

__all__ = ["Words", "list_private", "list_secrets", "list_unknown", "to_entry", "to_short"]

_OTHER = re.compile(r"[^A-Za-z0-9]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """What is needed to put an object of a kind into words.

    Attributes:
        section: The section that it belongs to.
        kind: Its kind.
        listing: Where it is listed.
        schema: Its schema.
    """

    section: Section
    kind: str
    listing: Listing
    schema: Schema


def to_entry(words: Words, state: Object, *, is_whole: bool = False) -> dict[str, Any]:
    """Return the entry of an object: what can be set, is no secret, and is not what it would be anyway.

    Args:
        words: What it is.
        state: What it has.
        is_whole: Whether what it would be anyway is written too.
    """
    section, block = words.section, words.schema.block
    word = next(word for word, kind in section.kinds.items() if kind == words.kind)
    entry: dict[str, Any] = {"type": word} if word else {}
    facts = list_attributes(section, words.kind)
    # What has to be there comes first.
    for name in sorted(facts, key=lambda one: not facts[one].get("required")):
        attribute = section.names.get(name, name)
        if _is_secret(words, name):
            continue
        has = state.get(attribute)
        value = has if is_whole and attribute in block.attributes else _value(words, attribute, block, has)
        if value is not None:
            entry[name] = value
    return entry


def _value(words: Words, name: str, block: Block, value: Any) -> Any:
    """Return what an entry says for an attribute or block; None where nothing need be said."""
    if name in block.blocks:
        told = None if value in (None, []) else _nested(block.blocks[name], value, words.schema)
        return None if name in words.listing.read_with and not told else told
    attribute = block.attributes[name]
    if name in words.listing.usual and value == words.listing.usual[name]:
        return None
    return _told(attribute, value, words.schema)


def _told(attribute: Attribute, value: Any, schema: Schema) -> Any:
    if value is None or (not attribute.required and not _matters(attribute, value, schema)):
        return None
    return value if attribute.nested is None else _nested(attribute.nested, value, schema)


def _matters(attribute: Attribute, value: Any, schema: Schema) -> bool:
    """Return whether it makes a difference that a value is written."""
    default = attribute.rule.default
    if default is not UNSET:
        return bool(value != default) and not (schema.sdk and is_zero(value) and is_zero(default))
    if schema.sdk:
        return not is_zero(value)
    # A flag that is off says something, also where Proxmox has it by itself.
    return not attribute.computed or value not in ("", [], {})


def _nested(nested: Nested, value: Any, schema: Schema) -> Any:
    if isinstance(value, list):
        items = [_object(nested.block, one, schema) for one in value]
        return items[0] if nested.max_items == 1 else items
    if nested.nesting is Nesting.MAP:
        return {key: _object(nested.block, one, schema) for key, one in value.items()}
    return _object(nested.block, value, schema)


def _object(block: Block, values: Mapping[str, Any] | None, schema: Schema) -> dict[str, Any]:
    found: dict[str, Any] = {}
    attributes = sorted(block.attributes.items(), key=lambda one: not one[1].required)
    for name, attribute in attributes:
        can_be_set = attribute.required or attribute.optional
        value = _told(attribute, (values or {}).get(name), schema) if can_be_set else None
        if value is not None:
            found[name] = value
    return found


def _is_secret(words: Words, name: str) -> bool:
    """Return whether an attribute, by its name in the file, holds a secret."""
    fact = list_attributes(words.section, words.kind)[name]
    return bool(fact.get("sensitive")) or name in words.listing.private


def list_secrets(words: Words, name: str, state: Object) -> dict[str, str]:
    """Return the secrets that an object cannot be without, by attribute, as secrets.yaml would call them."""
    facts = list_attributes(words.section, words.kind)
    needed = [
        one
        for one, fact in facts.items()
        if fact.get("sensitive") and (fact.get("required") or state.get(words.section.names.get(one, one)))
    ]
    place = _OTHER.sub("_", f"{words.section.path[-1]}_{name}").strip("_").lower()
    return {one: f"passwords.{place}_{one}" for one in needed}


def list_private(words: Words, state: Object) -> list[str]:
    """Return the attributes that are shown and may hold secrets, which a file cannot have in clear."""
    return [one for one in sorted(words.listing.private) if state.get(one)]


def list_unknown(words: Words, entry: Mapping[str, Any]) -> list[str]:
    """Return the attributes that an entry has to have and nobody can tell."""
    facts = list_attributes(words.section, words.kind)
    return sorted(name for name, fact in facts.items() if fact.get("required") and name not in entry)


def to_short(section: Section, entry: dict[str, Any]) -> Any:
    """Return an entry as short as the file may have it."""
    if section.item_short and section.short in entry:
        items = [
            one[section.item_short] if set(one) == {section.item_short} else one
            for one in entry[section.short]
        ]
        entry = {**entry, section.short: items}
    return entry[section.short] if section.short and set(entry) == {section.short} else entry
