"""What secrets look like: only forms that are hardly ever anything else."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.base.documents.lines import LineIndex

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["ALLOWED", "Match", "find_secrets", "is_stand_in"]

# On the line of a finding, or on the one above it, this says that it is none.
ALLOWED = "stackyard:allow-secret"

# How the header of a private key begins in base64: the part that what follows does not change.
_BASE64_HEADS = "|".join(
    base64.b64encode(f"-----BEGIN {kind}PRIVATE KEY--".encode())[: (len(kind) + 24) // 3 * 4].decode()
    for kind in ("", "RSA ", "EC ", "OPENSSH ", "ED25519 ")
)
# What sort of secret, the words of which one has to be in it, and the pattern. Words are found far faster.
_PATTERNS = (
    (
        "a private key",
        "-----BEGIN",
        r"-----BEGIN (?:RSA |EC |DSA |OPENSSH |ED25519 )?PRIVATE KEY-----"
        r"(?:\\n|\\r|\s)*[A-Za-z0-9+/=:,\- \r\n]{40}",
    ),
    (
        # The form of kubeconfig, talosconfig and Secrets of Kubernetes.
        "a private key in base64",
        "LS0tLS1CRUdJTi",
        rf"\b(?:{_BASE64_HEADS})[A-Za-z0-9+/=]{{40,}}",
    ),
    (
        "a JSON web token",
        ".eyJ",
        r"\beyJ[A-Za-z0-9_-]{10,2000}\.eyJ[A-Za-z0-9_-]{20,4000}\.[A-Za-z0-9_-]{20,1000}",
    ),
    ("a private key of PGP", "-----BEGIN", r"-----BEGIN PGP PRIVATE KEY BLOCK-----\s"),
    ("a private key of age", "AGE-SECRET-KEY-", r"\bAGE-SECRET-KEY-(?:PQ-)?1[0-9A-Z]{58,}"),
    (
        "an API token of Proxmox VE",
        "@",
        r"(?<![\w.+-])[\w.+-]{1,64}@[\w.-]{1,64}![\w.-]{1,64}=[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b",
    ),
    (
        "a token of GitHub",
        "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_",
        r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{60,})",
    ),
    ("a token of GitLab", "glpat-", r"\bglpat-[A-Za-z0-9_-]{20,}"),
    ("an access key of AWS", "AKIA ASIA", r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    ("a token of Slack", "xox", r"\bxox[abeprs]-[A-Za-z0-9-]{20,}"),
    ("a key of Google", "AIza", r"\bAIza[0-9A-Za-z_-]{35}\b"),
    ("a live key of Stripe", "k_live_", r"\b[rs]k_live_[0-9A-Za-z]{20,}"),
    ("a key of Tailscale", "tskey-", r"\btskey-[a-z]+-[A-Za-z0-9]{8,}-[A-Za-z0-9]{16,}"),
    ("a token of HashiCorp Vault", "hvb. hvs.", r"\bhv[bs]\.[A-Za-z0-9_-]{24,}"),
    ("a token of npm", "npm_", r"\bnpm_[A-Za-z0-9]{36}\b"),
    ("a token of PyPI", "pypi-AgE", r"\bpypi-AgE[A-Za-z0-9_-]{50,}"),
    (
        "the hash of a password",
        "$5$ $6$ $y$",
        r"\$(?:5|6|y)\$(?:[a-z0-9=]{1,40}\$)?[./A-Za-z0-9]{4,64}\$[./A-Za-z0-9]{40,}",
    ),
    (
        "a password in an address",
        "://",
        r"\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@\"'${}<>]{1,64}:[^\s/:@\"'${}<>]{6,128}@[\w.-]+",
    ),
)
_COMPILED = tuple((name, tuple(words.split()), re.compile(pattern)) for name, words, pattern in _PATTERNS)
# What documentation puts in the place of a secret.
_STAND_IN = re.compile(r"example|xxxx|\.\.\.|changeme|change_me|password|placeholder|dummy", re.IGNORECASE)
# A stand-in of few characters, such as a number of zeros.
_FEWEST_CHARACTERS = 6
# One is enough to hold a file back; a user who has as many corrects what made them, not each.
_MOST_MATCHES = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A secret in a text: what sort, and in which line."""

    name: str
    line: int


def find_secrets(text: str) -> Iterator[Match]:
    """Yield every secret of a text, up to a thousand; binary files are not searched."""
    if "\0" in text[:8000]:
        return
    lines = LineIndex(text)
    allowed = _list_allowed_lines(text, lines)
    seen: set[tuple[str, int]] = set()
    likely = ((name, one) for name, words, one in _COMPILED if any(word in text for word in words))
    for name, pattern in likely:
        for match in pattern.finditer(text):
            line = lines.line_of(match.start())
            if (name, line) in seen or line in allowed or is_stand_in(match[0]):
                continue
            if len(seen) == _MOST_MATCHES:
                return
            seen.add((name, line))
            yield Match(name=name, line=line)


def _list_allowed_lines(text: str, lines: LineIndex) -> frozenset[int]:
    """Return the lines that say themselves, or below one that says, that what they hold is no secret."""
    marks = (match.start() for match in re.finditer(re.escape(ALLOWED), text))
    said = {lines.line_of(mark) for mark in marks}
    return frozenset(said | {line + 1 for line in said})


def is_stand_in(text: str) -> bool:
    """Return whether a text is what documentation puts in the place of a secret."""
    tail = re.split(r"[=:]", text)[-1] if "=" in text else text
    return _STAND_IN.search(text) is not None or len(set(tail) - {"-"}) < _FEWEST_CHARACTERS
