"""Files that must not be committed whatever is in them: states, plans, keystores, and open environments.

A state and a plan hold the secrets of their resources in clear, in a form that no pattern knows.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from stackyard.secrets.check.patterns import is_stand_in

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["find_file_forms", "is_environment"]

_STATE = re.compile(r".*\.tfstate(?:\..+)?")
_PLAN = re.compile(r".*\.tfplan|tfplan")
_KEYSTORE = re.compile(r".*\.(?:p12|pfx|jks|keystore)")
_PASSWORD = re.compile(r"\.?vault[-_]pass(?:word)?(?:\.txt)?|\.?ansible[-_]vault[-_]pass(?:word)?(?:\.txt)?")
_ENVIRONMENT = re.compile(r"\.env(?:\..+)?|.+\.env")
_EXAMPLE = re.compile(r".*[._-](?:example|sample|template|dist|tpl|j2)")
_HEAD = 4096
_STATE_SIGNS = ('"terraform_version"', '"lineage"', '"serial"')
# OpenTofu can encrypt states and plans; such a file keeps no secret in clear.
_ENCRYPTED = '"encrypted_data"'
_ASSIGNMENT = re.compile(r"^[ \t]*(?:export[ \t]+)?([A-Za-z_]\w*)[ \t]*=[ \t]*([^\n]*)", re.MULTILINE)
_SECRET_KEY = re.compile(
    r"PASSWORD|PASSWD|PASSPHRASE|SECRET|TOKEN|PRIVATE_KEY|ACCESS_KEY|API_?KEY|CREDENTIAL"
)
_SEALED = ("ENC[", "$ANSIBLE_VAULT;", "vault:")


def find_file_forms(path: str, text: str | None) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file that make it one of these, with what it is.

    Args:
        path: Where it is.
        text: What it holds; None where it is too large to be read.
    """
    name = PurePosixPath(path).name
    what = _name_form(name) or _content_form(text or "")
    if what and text != "" and _ENCRYPTED not in (text or "")[:_HEAD]:
        yield 1, what
    elif text and is_environment(name):
        yield from _find_open_values(text)


def is_environment(name: str) -> bool:
    """Return whether a file holds environment variables, and is no example."""
    return _ENVIRONMENT.fullmatch(name) is not None and not _EXAMPLE.fullmatch(name)


def _name_form(name: str) -> str:
    if _STATE.fullmatch(name):
        return "a state of OpenTofu"
    if _PLAN.fullmatch(name):
        return "a plan of OpenTofu"
    if _KEYSTORE.fullmatch(name):
        return "a file of private keys"
    return "a password of Ansible Vault" if _PASSWORD.fullmatch(name) else ""


def _content_form(text: str) -> str:
    head = text[:_HEAD]
    if head.lstrip()[:1] == "{" and all(sign in head for sign in _STATE_SIGNS):
        return "a state of OpenTofu"
    return "a plan of OpenTofu" if head.startswith("PK\x03\x04") and "tfplan" in head[:200] else ""


def _find_open_values(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file of environment variables that set something secret in clear."""
    for matched in _ASSIGNMENT.finditer(text):
        value = matched[2].partition(" #")[0].strip().strip("\"'")
        if not _SECRET_KEY.search(matched[1].upper()) or matched[1].upper().endswith(("_FILE", "_PATH")):
            continue
        if value and value[0] not in "$<{" and not value.startswith(_SEALED) and not is_stand_in(value):
            yield text.count("\n", 0, matched.start(1)) + 1, f"a value of `{matched[1]}`"
