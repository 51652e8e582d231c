"""The environment of the engine of a stack: the user's own session, but for what steers the engine.

A site passes nothing on by accident. A stack is the user's own code: its providers and its backend expect the
variables of the user's shell (`AWS_PROFILE`, `TF_VAR_…`, `PROXMOX_VE_API_TOKEN`).
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from stackyard.base import directories

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["engine_environment", "find_cli_config", "plugin_cache", "secret_values"]

# What would change how the engine is run, or what it prints, behind our back.
_OURS = frozenset(
    "TF_DATA_DIR TF_WORKSPACE TF_IN_AUTOMATION TF_INPUT TF_REATTACH_PROVIDERS TF_CLI_CONFIG_FILE "
    "TERRAFORM_CONFIG CHECKPOINT_DISABLE TF_IGNORE".split()
)
_OUR_PREFIXES = ("TF_CLI_ARGS", "TF_LOG", "STACKYARD_")
_SECRET_NAME = re.compile(
    r"PASSWORD|PASSWD|PASSPHRASE|SECRET|TOKEN|PRIVATE_KEY|ACCESS_KEY|API_KEY|CREDENTIAL"
)
_SHORTEST_SECRET = 6
_CACHE_VARIABLE = "TF_PLUGIN_CACHE_DIR"


def engine_environment(session: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return what the engine of a stack gets of the user's environment."""
    found = os.environ if session is None else session
    return {
        name: value
        for name, value in found.items()
        if name not in _OURS and not name.startswith(_OUR_PREFIXES)
    }


def secret_values(environment: Mapping[str, str], folder: Path) -> tuple[str, ...]:
    """Return the values whose names say that they must not be shown.

    A word that is also part of the paths that every command line has (the user `stackyard` of a bucket) is
    left out: it is no secret, and no program could be started.

    Args:
        environment: The environment.
        folder: The folder of the stack.
    """
    paths = (str(folder), str(directories.cache_folder()), os.environ.get("PATH", ""))
    known = "\n".join((*paths, os.environ.get("STACKYARD_TOFU", "")))
    return tuple(
        value
        for name, value in environment.items()
        if _SECRET_NAME.search(name.upper())
        and not name.upper().endswith("_ID")
        and len(value) >= _SHORTEST_SECRET
        and value not in known
        and not os.path.exists(value)
    )


def find_cli_config() -> Path | None:
    """Return the settings file of the engine that the user has: mirrors, credentials of registries."""
    if named := os.environ.get("STACKYARD_TOFU_CONFIG"):
        return Path(named)
    said = (os.environ.get(name) for name in ("TF_CLI_CONFIG_FILE", "TERRAFORM_CONFIG"))
    usual = (Path.home() / name for name in (".tofurc", ".terraformrc"))
    # The engine only warns of one that is missing.
    found = (path for path in (*(Path(one) for one in said if one), *usual) if path.is_file())
    return next(found, None)


def plugin_cache(environment: Mapping[str, str]) -> Path:
    """Return the folder where providers are kept for all stacks: the user's, or one in our cache."""
    named = environment.get(_CACHE_VARIABLE)
    return Path(named) if named else directories.cache_folder() / "providers"
