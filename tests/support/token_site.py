"""A site whose only node `pve` has no token, and the file of its cluster."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import yaml
from tests.support.pages import ROOT
from tests.support.path import Yard, make_yard

from stackyard import lab
from stackyard.base import yamledit
from stackyard.secrets import change_secrets
from stackyard.sources.site.edit import remove_api_token

__all__ = ["CLUSTER", "PASSWORD", "TARGET", "make_token_yard", "write_cluster"]

PASSWORD = "canary-of-anna-4711"
_PAGE = "docs/howto/tokens-and-passwords.md"
TARGET = "hypervisor:home"
_SHOWN = re.search(r"```yaml\n# hypervisors/home.yaml\n(.*?)```", (ROOT / _PAGE).read_text(), re.DOTALL)
# The cluster that the page shows.
CLUSTER: dict[str, Any] = yaml.safe_load(_SHOWN[1] if _SHOWN else "")


def make_token_yard(running: lab.Running, folder: Path, **env: str) -> Yard:
    """Make the site, and who may log in to its node."""
    made = make_yard(running, folder, STACKYARD_PVE_PASSWORD=running.password, **env)
    node = made.folder / "nodes" / "lab.yaml"
    text = node.read_text().replace("api_token: lab", "api_token: pve")
    node.with_name("pve.yaml").write_text(text)
    node.unlink()
    shutil.rmtree(made.folder / "envs")
    remove_api_token(made.folder, "lab")
    change_secrets(made.folder / "secrets.yaml", [yamledit.Set(("passwords", "anna"), PASSWORD)])
    write_cluster(made, CLUSTER)
    return made


def write_cluster(yard: Yard, document: dict[str, Any]) -> None:
    """Write the file of the cluster."""
    (yard.folder / "hypervisors").mkdir(exist_ok=True)
    (yard.folder / "hypervisors" / "home.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
