"""A repository with the recipes of stackyard, for a lab: the modules, and one stack of guests."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.support.recipes import RECIPES
from tests.support.secrets import keyring
from tests.support.stack_lab import VAULT
from tests.support.stack_repo import StackRepo, make_repo

from stackyard import lab
from stackyard.secrets.vault.file import seal_whole

__all__ = ["STACK", "make_recipe_repo"]

STACK = "onprem/lab"
_BACKEND = 'terraform {\n  backend "http" {}\n}\n'


def make_recipe_repo(
    folder: Path, running: lab.Running, data: str | None = None, *, top: str = "tofu", stack: str = STACK
) -> StackRepo:
    """Make a repository with one stack from the Proxmox recipe.

    Args:
        folder: Where.
        running: The lab that it is for.
        data: What is in `vms.tfvars` instead of the guests of the recipe.
        top: The folder with modules and stacks.
        stack: The name of the stack.
    """
    repo = make_repo(folder, {}, env=VAULT)
    own = folder / top / "stacks" / stack
    shutil.copytree(RECIPES / "modules", folder / top / "modules")
    shutil.copytree(RECIPES / "stacks/proxmox", own)
    (own / "backend.tf").write_text(_BACKEND)
    if data is not None:
        (own / "vms.tfvars").write_text(data)
    (own / "secrets.tfvars").write_bytes(seal_whole(_secrets(running).encode(), keyring()))
    repo.commit("a stack from the recipe")
    return repo


def _secrets(running: lab.Running) -> str:
    return (
        f'proxmox_connection = {{ url = "{running.url}", insecure_tls = true, auth_method = "token", '
        f'token = {{ api_token = "{running.api_token}" }} }}\n'
        'user_credentials = { default_user = { username = "operator", password = "first-Password-1" } }\n'
    )
