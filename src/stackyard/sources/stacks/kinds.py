"""The words and names of stacks: which files are code, values, documentation, or left by an engine."""

from __future__ import annotations

import re

__all__ = [
    "KIND",
    "LOCK_FILE",
    "STACK_FILE",
    "is_auto_loaded",
    "is_code",
    "is_left_out",
    "is_override",
    "is_stack_name",
    "is_values",
]

# The word before the colon of a target.
KIND = "stack"
STACK_FILE = "stack.yaml"
LOCK_FILE = ".terraform.lock.hcl"
# No `@`: behind it stands the workspace of a target.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]*(?:/[A-Za-z0-9_][A-Za-z0-9._+-]*)*")
_CODE = (".tf", ".tofu", ".tf.json", ".tofu.json")
_VALUES = (".tfvars", ".tfvars.json")
# Folders whose files no plan depends on: what engines keep, what people read, what tests are run with.
_FOLDERS = re.compile(
    r"(?:^|/)(?:\.terraform|\.git|\.stackyard|\.terragrunt-cache|docs?|\.github|\.gitlab|\.idea|\.vscode)/"
)
# Documentation, states, plans, logs of crashes, tests, and settings of editors and linters.
_FILES = re.compile(
    r"(?:README|LICENSE|LICENCE|COPYING|NOTICE|CHANGELOG|CONTRIBUTING|CODEOWNERS|AUTHORS)(?:[._-].*)?"
    r"|.*\.(?:md|markdown|rst|adoc|tfstate|tfplan|tfstate\..*|tftest\.hcl|tftest\.json|tofutest\.hcl|tofutest\.json)"
    r"|tfplan|\.terraform\.tfstate\.lock\.info|errored\.tfstate|crash(?:\..*)?\.log"
    r"|\.gitignore|\.gitattributes|\.gitkeep|\.keep|\.editorconfig|\.tflint\.hcl|\.terraform-docs\.ya?ml"
    r"|\.pre-commit-config\.yaml|\.DS_Store|.*~|\..*\.sw[a-p]",
    re.IGNORECASE,
)


def is_stack_name(name: str) -> bool:
    """Return whether a stack can have this name."""
    return _NAME.fullmatch(name) is not None


def is_code(name: str) -> bool:
    """Return whether an engine reads a file of this name as code."""
    return name.endswith(_CODE) and name[0] not in ".#" and name[-1] != "~"


def is_override(name: str) -> bool:
    """Return whether an engine reads a file of code last, and lets it change parts of what others say."""
    stem = name.partition(".")[0]
    return is_code(name) and (stem == "override" or stem.endswith("_override"))


def is_values(name: str) -> bool:
    """Return whether a file holds values of variables."""
    return name.endswith(_VALUES)


def is_auto_loaded(name: str) -> bool:
    """Return whether an engine reads a file of values without being asked to."""
    return name in ("terraform.tfvars", "terraform.tfvars.json") or name.endswith(
        (".auto.tfvars", ".auto.tfvars.json")
    )


def is_left_out(path: str) -> bool:
    """Return whether no plan depends on a file below a folder of code, unless the code reads it by name.

    Args:
        path: From the folder of the code.
    """
    name = path.rpartition("/")[2]
    return _FILES.fullmatch(name) is not None or _FOLDERS.search(path) is not None
