"""Which values and comments of a file are encrypted."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from stackyard.base.errors import InvalidInputError, Location

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["DEFAULT_RULE", "PathRule", "RuleKind", "SopsRuleError", "rule_from"]


class SopsRuleError(InvalidInputError):
    """A rule of which values are encrypted has a pattern that cannot be used, or stands beside another."""

    code = "E-SOPS-RULE"
    summary = "A rule of what to encrypt cannot be used"
    default_remedy = "Name at most one of the rules, with a pattern that is valid in Go and in Python."


class RuleKind(enum.StrEnum):
    """The sorts of rules, as files and `.sops.yaml` spell them."""

    UNENCRYPTED_SUFFIX = "unencrypted_suffix"
    ENCRYPTED_SUFFIX = "encrypted_suffix"
    UNENCRYPTED_REGEX = "unencrypted_regex"
    ENCRYPTED_REGEX = "encrypted_regex"
    UNENCRYPTED_COMMENT_REGEX = "unencrypted_comment_regex"
    ENCRYPTED_COMMENT_REGEX = "encrypted_comment_regex"


_SUFFIXES = (RuleKind.UNENCRYPTED_SUFFIX, RuleKind.ENCRYPTED_SUFFIX)
_COMMENTS = (RuleKind.UNENCRYPTED_COMMENT_REGEX, RuleKind.ENCRYPTED_COMMENT_REGEX)


@dataclass(frozen=True)
class PathRule:
    """What to encrypt: everything but, or nothing but, what a suffix or a pattern fits."""

    kind: RuleKind
    pattern: str
    _cache: dict[tuple[str, ...], bool] = field(default_factory=dict, compare=False, repr=False)

    def encrypts(self, path: tuple[str, ...], *, is_marked: bool) -> bool:
        """Return whether a value or comment is encrypted.

        Args:
            path: The keys that lead to it.
            is_marked: Whether a comment that counts for it fits, as `marks` says.
        """
        if self.kind in _COMMENTS:
            return is_marked == (self.kind is RuleKind.ENCRYPTED_COMMENT_REGEX)
        known = self._cache.get(path)
        if known is None:
            is_fitting = any(map(self._fits, path))
            known = is_fitting == (self.kind in (RuleKind.ENCRYPTED_SUFFIX, RuleKind.ENCRYPTED_REGEX))
            self._cache[path] = known
        return known

    def marks(self, comment: str) -> bool:
        """Return whether a comment says of what follows it, and of all below that, if it is encrypted."""
        return self.kind in _COMMENTS and self._fits(comment)

    @property
    def marks_itself(self) -> bool:
        """Whether a comment counts for itself; the one that asks for encryption is not encrypted."""
        return self.kind is not RuleKind.ENCRYPTED_COMMENT_REGEX

    def _fits(self, word: str) -> bool:
        if self.kind in _SUFFIXES:
            return word.endswith(self.pattern)
        return self._compiled.search(word) is not None

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self.pattern)


DEFAULT_RULE = PathRule(RuleKind.UNENCRYPTED_SUFFIX, "_unencrypted")


def rule_from(settings: Mapping[str, object], where: Location) -> PathRule:
    """Return the rule that a file's metadata or a creation rule names, or the usual one.

    Raises:
        SopsRuleError: There are several, or its pattern cannot be used.
    """
    named = [kind for kind in RuleKind if settings.get(kind.value)]
    if len(named) > 1:
        both = " and ".join(kind.value for kind in named)
        raise SopsRuleError(f"{where.path} has {both}, and SOPS takes one of them.", where=where)
    if not named:
        return DEFAULT_RULE
    rule = PathRule(named[0], str(settings[named[0].value]))
    if rule.kind not in _SUFFIXES:
        check_pattern(rule.pattern, where)
    return rule


def check_pattern(pattern: str, where: Location) -> None:
    """Refuse a pattern that Python would not read as Go does.

    Raises:
        SopsRuleError: It cannot be used.
    """
    problem = None
    if "[[:" in pattern or "\\p{" in pattern or "\\z" in pattern:
        problem = "it uses a class of characters that only Go knows"
    else:
        try:
            re.compile(pattern)
        except re.error as err:
            problem = str(err)
    if problem:
        raise SopsRuleError(f"The pattern `{pattern}` cannot be used: {problem}.", where=where)
