"""A repository with the recipes of stackyard, for a lab: the modules, and one stack of guests."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.support.secrets import keyring
from tests.support.stack_lab import VAULT
from tests.support.stack_repo import StackRepo, make_repo

from stackyard import lab
from stackyard.secrets.vault.file import seal_whole

__all__ = ["RECIPES", "STACK", "make_recipe_repo", "write_recipe_secrets"]

RECIPES = Path(lab.__file__).parent / "recipes"
STACK = "onprem/lab"
_BACKEND = 'terraform {\n  backend "http" {}\n}\n'


def make_recipe_repo(folder: Path, running: lab.Running | None = None, data: str | None = None) -> StackRepo:
    """Make a repository with one stack from the Proxmox recipe.

    Args:
        folder: Where.
        running: The lab that it is for; without one, nothing can be applied.
        data: What is in `vms.tfvars` instead of the guests of the recipe.
    """
    repo = make_repo(folder, {}, env=VAULT)
    own = folder / "tofu/stacks" / STACK
    shutil.copytree(RECIPES / "modules", folder / "tofu/modules")
    shutil.copytree(RECIPES / "stacks/proxmox", own)
    (own / "backend.tf").write_text(_BACKEND)
    if data is not None:
        (own / "vms.tfvars").write_text(data)
    write_recipe_secrets(repo, running)
    repo.commit("a stack from the recipe")
    return repo


def write_recipe_secrets(repo: StackRepo, running: lab.Running | None) -> None:
    """Write the vaulted file of the stack."""
    url = "https://127.0.0.1:1" if running is None else running.url
    token = "root@pam!none=0" if running is None else running.api_token
    text = (
        f'proxmox_connection = {{ url = "{url}", insecure_tls = true, auth_method = "token", '
        f'token = {{ api_token = "{token}" }} }}\n'
        'user_credentials = { default_user = { username = "operator", password = "first-Password-1" } }\n'
    )
    path = repo.root / "tofu/stacks" / STACK / "secrets.tfvars"
    path.write_bytes(seal_whole(text.encode(), keyring()))
