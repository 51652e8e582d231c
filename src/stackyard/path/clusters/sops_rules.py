"""The rules of `.sops.yaml` that the encrypted files of a cluster need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.base import files, yamledit
from stackyard.base.errors import StackyardError
from stackyard.secrets.sops.age import recipient_of
from stackyard.secrets.sops.config import SopsConfig, find_config, parse_config
from stackyard.secrets.sops.rules import RuleKind
from stackyard.sources.cluster.flux_rule import FLUX_RULE, hides_object

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from stackyard.secrets.keyring import Keyring

__all__ = ["AgeKeyMissingError", "SopsRules", "plan_rules"]

_INFRASTRUCTURE = r"infrastructure/.*\.sops\.ya?ml"
_CLUSTER = r"cluster\.sops\.ya?ml$"


class AgeKeyMissingError(StackyardError):
    """There is no age key to encrypt the secrets of a cluster for; nothing was written."""

    code = "E-CLUSTER-AGE-KEY"
    summary = "There is no age key"
    default_remedy = (
        "Name yours in SOPS_AGE_KEY_FILE, or put it into age.key beside cluster.yaml. Without any, "
        "`stackyard secrets encrypt cluster.sops.yaml --age self` or `age-keygen -o age.key` makes one; keep "
        "a copy of it."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SopsRules:
    """A `.sops.yaml` as it will be.

    Attributes:
        before: Its text; empty where there is none.
        after: Its text with the rules that were missing.
        config: The same, read.
    """

    before: str
    after: str
    config: SopsConfig


def plan_rules(top: Path, encrypted: Iterable[Path], keyring: Keyring) -> dict[Path, SopsRules]:
    """Return for each file the `.sops.yaml` that has a rule for it.

    Args:
        top: The top of the repository, for a new `.sops.yaml`.
        encrypted: The files that are to be encrypted.
        keyring: The keys of the user, for new rules.

    Raises:
        AgeKeyMissingError: A rule is missing, and there is no key to write it for.
        SopsConfigError: `.sops.yaml` is not valid.
        UnfaithfulEditError: A rule cannot be added without changing other lines.
        FileError: It cannot be read.
    """
    configs: dict[Path, SopsRules] = {}
    homes = {file: find_config(file) or top / ".sops.yaml" for file in encrypted}
    for file, path in homes.items():
        rules = configs.get(path) or _read_rules(path)
        configs[path] = rules if _has_rule(rules.config, file) else _add_rule(rules, file, keyring)
    return {file: configs[path] for file, path in homes.items()}


def _read_rules(path: Path) -> SopsRules:
    text = files.read_text(path) if path.exists() else ""
    return SopsRules(before=text, after=text, config=parse_config(text, path))


def _has_rule(config: SopsConfig, file: Path) -> bool:
    """Return whether a rule fits a file, and leaves in clear what Flux has to read in it."""
    if config.find_rule(file) is None:
        return False
    return not (_is_manifest(config, file) and hides_object(config.creation_rule(file).rule))


def _is_manifest(config: SopsConfig, file: Path) -> bool:
    folders = _list_folders(config, file)
    # A cluster may itself be called `kubernetes`, and have its infrastructure in a folder of that name.
    return "kubernetes" in folders and folders[-1] != "infrastructure"


def _list_folders(config: SopsConfig, file: Path) -> tuple[str, ...]:
    return file.absolute().relative_to(config.path.parent.absolute()).parts[:-1]


def _add_rule(rules: SopsRules, file: Path, keyring: Keyring) -> SopsRules:
    path = rules.config.path
    change: yamledit.Change
    if (wider := rules.config.find_rule(file)) is not None:
        # SOPS takes the first rule that fits. The recipients stay those of the rule that came first so far.
        kept = {key: value for key, value in wider.items() if key not in set(RuleKind)}
        change = yamledit.Prepend(("creation_rules",), {**FLUX_RULE, **kept, **FLUX_RULE})
    elif rules.config.rules:
        change = yamledit.Append(("creation_rules",), _make_rule(file, rules.config, keyring))
    else:
        change = yamledit.Set(("creation_rules",), [_make_rule(file, rules.config, keyring)])
    after = yamledit.edit_text(rules.after, [change], str(path))
    return SopsRules(before=rules.before, after=after, config=parse_config(after, path))


def _make_rule(file: Path, config: SopsConfig, keyring: Keyring) -> dict[str, Any]:
    recipients = _find_recipients(config, keyring)
    if _is_manifest(config, file):
        return {**FLUX_RULE, "age": recipients}
    pattern = _INFRASTRUCTURE if "infrastructure" in _list_folders(config, file) else _CLUSTER
    return {"path_regex": pattern, "mac_only_encrypted": True, "age": recipients}


def _find_recipients(config: SopsConfig, keyring: Keyring) -> str:
    """Return for whom the other rules encrypt; for the user where there are none."""
    known = {rule["age"] for rule in config.rules if isinstance(rule.get("age"), str)}
    if len(known) == 1:
        return str(known.pop())
    own = recipient_of(keyring)
    if own is None:
        raise AgeKeyMissingError(
            f"The secrets are to be encrypted, {config.path} has no rule for them, and you have no age key: "
            + "; ".join(keyring.notes)
            + "."
        )
    return own
