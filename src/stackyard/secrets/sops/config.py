"""`.sops.yaml`: for whom new files are encrypted, and which of their values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from stackyard.base import files
from stackyard.base.documents.limits import SMALL
from stackyard.base.documents.yamltext import YamlLimitError, parse_yaml
from stackyard.base.errors import InvalidInputError, Location
from stackyard.secrets.sops.age import check_recipient
from stackyard.secrets.sops.rules import DEFAULT_RULE, PathRule, check_pattern, rule_from

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

__all__ = ["CreationRule", "SopsConfig", "SopsConfigError", "find_config", "parse_config", "read_config"]

_NAME = ".sops.yaml"
# The services that we cannot encrypt for, as a creation rule spells them.
_FOREIGN = ("pgp", "kms", "gcp_kms", "hckms", "azure_keyvault", "hc_vault_transit_uri", "hc_vault")
_YAML_INDENT = 4


class SopsConfigError(InvalidInputError):
    """`.sops.yaml` is not valid, has no rule for a file, or asks for keys that only sops can use."""

    code = "E-SOPS-CONFIG"
    summary = ".sops.yaml does not say how to encrypt this file"
    default_remedy = "Add a creation rule with an `age` recipient for it, or name recipients with --age."


@dataclass(frozen=True, slots=True, kw_only=True)
class CreationRule:
    """How a new file is encrypted.

    Attributes:
        groups: The age recipients, in key groups.
        threshold: How many of several groups are needed; all when zero.
        rule: Which values are encrypted.
        is_mac_only_encrypted: Whether the MAC leaves out values in clear.
        foreign: The keys of other services that the rule asks for.
        yaml_indent: How far the `sops` part of YAML is set off.
    """

    groups: tuple[tuple[str, ...], ...]
    threshold: int = 0
    rule: PathRule = DEFAULT_RULE
    is_mac_only_encrypted: bool = False
    foreign: tuple[str, ...] = ()
    yaml_indent: int = _YAML_INDENT


@dataclass(frozen=True, slots=True, kw_only=True)
class SopsConfig:
    """A `.sops.yaml`."""

    path: Path
    rules: tuple[Mapping[str, Any], ...]
    yaml_indent: int = _YAML_INDENT

    def list_recipients(self) -> tuple[str, ...]:
        """Return the age recipients of all rules, each once.

        Raises:
            RecipientError: One of them cannot be used.
            SopsConfigError: A rule is not valid.
        """
        return self._join_recipients(self.rules)

    def list_recipients_of(self, files: Iterable[Path]) -> tuple[str, ...]:
        """Return the age recipients of the rules that fit files, each once; none where no rule fits.

        Raises:
            RecipientError: One of them cannot be used.
            SopsConfigError: A rule is not valid.
        """
        return self._join_recipients(rule for file in files if (rule := self.find_rule(file)) is not None)

    def _join_recipients(self, rules: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
        read = (_creation_rule(rule, self.path, self.yaml_indent) for rule in rules)
        return tuple(dict.fromkeys(name for rule in read for group in rule.groups for name in group))

    def find_rule(self, file: Path) -> Mapping[str, Any] | None:
        """Return the first rule whose pattern fits a file, seen from the folder of `.sops.yaml`."""
        shown = _relative(file, self.path.parent)
        for rule in self.rules:
            pattern = rule.get("path_regex")
            if not pattern or re.search(str(pattern), shown):
                return rule
        return None

    def creation_rule(self, file: Path) -> CreationRule:
        """Return how a new file is encrypted.

        Raises:
            SopsConfigError: No rule fits it, or the rule asks for keys that we cannot encrypt for.
        """
        found = self.find_rule(file)
        if found is None:
            raise SopsConfigError(
                f"No creation rule of {self.path} fits {file}.", where=Location(str(self.path))
            )
        rule = _creation_rule(found, self.path, self.yaml_indent)
        if rule.foreign:
            raise SopsConfigError(
                f"The rule of {self.path} for {file} also asks for keys of {', '.join(rule.foreign)}, for "
                "which only sops itself can encrypt.",
                where=Location(str(self.path)),
                remedy="Encrypt the file with sops, or name recipients with --age.",
            )
        return rule


def _relative(file: Path, folder: Path) -> str:
    absolute = Path(file).absolute()
    try:
        return absolute.relative_to(folder.absolute()).as_posix()
    except ValueError:
        return absolute.as_posix()


def find_config(file: Path) -> Path | None:
    """Return the `.sops.yaml` that counts for a file: the nearest in the folders above it."""
    for folder in Path(file).absolute().parents:
        if (folder / _NAME).is_file():
            return folder / _NAME
    return None


def read_config(path: Path) -> SopsConfig:
    """Read a `.sops.yaml`.

    Raises:
        SopsConfigError: It is not valid.
        FileError: It cannot be read.
    """
    return parse_config(files.read_text(path), path)


def parse_config(text: str, path: Path) -> SopsConfig:
    """Read the text of a `.sops.yaml`.

    Raises:
        SopsConfigError: It is not valid.
    """
    where = Location(str(path))
    try:
        found = parse_yaml(text, SMALL)
    except yaml.YAMLError as err:
        mark = getattr(err, "problem_mark", None)
        place = Location(str(path), mark.line + 1, mark.column + 1) if mark else where
        said = f": it is {err.problem}" if isinstance(err, YamlLimitError) else ""
        raise SopsConfigError(f"{path} is not valid YAML{said}.", where=place, remedy="Correct it.") from err
    if found is None:
        found = {}
    rules = found.get("creation_rules") or [] if isinstance(found, dict) else None
    if not isinstance(rules, list) or not all(isinstance(rule, dict) for rule in rules):
        raise SopsConfigError(
            f"`creation_rules` of {path} is no list of rules.", where=where, remedy="Correct it."
        )
    for rule in rules:
        if rule.get("path_regex"):
            check_pattern(str(rule["path_regex"]), where)
    return SopsConfig(path=path, rules=tuple(rules), yaml_indent=_indent(found))


def _indent(found: Mapping[str, Any]) -> int:
    stores = found.get("stores")
    settings = stores.get("yaml") if isinstance(stores, dict) else None
    indent = settings.get("indent") if isinstance(settings, dict) else None
    return indent if isinstance(indent, int) and 0 < indent < 20 else _YAML_INDENT


def _creation_rule(found: Mapping[str, Any], path: Path, yaml_indent: int) -> CreationRule:
    where = Location(str(path))
    groups = found.get("key_groups") or [found]
    if not isinstance(groups, list) or not all(isinstance(group, dict) for group in groups):
        raise SopsConfigError(f"`key_groups` of {path} is no list.", where=where, remedy="Correct it.")
    flat = [[*_merge_groups(group)] for group in groups]
    foreign = sorted({name for parts in flat for part in parts for name in _FOREIGN if part.get(name)})
    threshold = found.get("shamir_threshold") or 0
    recipients = tuple(
        tuple(dict.fromkeys(check_recipient(one) for part in parts for one in _recipients(part, where)))
        for parts in flat
    )
    if not isinstance(threshold, int) or threshold > len(groups):
        raise SopsConfigError(
            f"`shamir_threshold` of {path} is larger than the number of key groups.",
            where=where,
            remedy="Correct it.",
        )
    return CreationRule(
        groups=recipients,
        threshold=threshold,
        rule=rule_from(found, where),
        is_mac_only_encrypted=bool(found.get("mac_only_encrypted")),
        foreign=tuple(foreign),
        yaml_indent=yaml_indent,
    )


def _merge_groups(group: Mapping[str, Any], depth: int = 0) -> Iterator[Mapping[str, Any]]:
    """Yield a key group and those that it merges."""
    yield group
    merged = group.get("merge")
    if isinstance(merged, list) and depth < 10:
        for one in merged:
            if isinstance(one, dict):
                yield from _merge_groups(one, depth + 1)


def _recipients(group: Mapping[str, Any], where: Location) -> list[str]:
    found = group.get("age") or []
    listed: Sequence[Any] = found.split(",") if isinstance(found, str) else found
    if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
        raise SopsConfigError(f"`age` in {where.path} is no list of keys.", where=where, remedy="Correct it.")
    return [one.strip() for text in listed for one in text.split(",") if one.strip()]
