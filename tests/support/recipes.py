"""The recipes of the package in a repository of a test, and providers for them from the environment."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.support.engine import real_engine
from tests.support.stack_repo import StackRepo, make_repo

from stackyard.engine.version import Flavour

__all__ = [
    "AWS",
    "FLUX",
    "KUBERNETES",
    "LOCAL",
    "OCI",
    "PROXMOX",
    "RECIPES",
    "TALOS",
    "TLS",
    "Provider",
    "copy_stack",
    "mirror",
]

RECIPES = Path(__file__).parents[2] / "src/stackyard/recipes"


@dataclass(frozen=True, kw_only=True)
class Provider:
    """A provider that tests take from the environment.

    Attributes:
        name: Such as `hashicorp/aws`.
        variable: The variable that has the path of its binary.
        version: The version to install it as, unless the name of the binary has one.
    """

    name: str
    variable: str
    version: str

    def require(self) -> Path:
        """Return the binary, or skip the test and say what is missing."""
        named = os.environ.get(self.variable)
        if not named:
            pytest.skip(f"{self.variable} names no binary of the provider {self.name}")
        path = Path(named)
        assert path.is_file(), f"{self.variable} is {named}, which is not a file"
        return path


AWS = Provider(name="hashicorp/aws", variable="STACKYARD_TEST_AWS_PROVIDER", version="5.100.0")
OCI = Provider(name="oracle/oci", variable="STACKYARD_TEST_OCI_PROVIDER", version="7.0.0")
TALOS = Provider(name="siderolabs/talos", variable="STACKYARD_TEST_TALOS_PROVIDER", version="0.11.0")
FLUX = Provider(name="fluxcd/flux", variable="STACKYARD_TEST_FLUX_PROVIDER", version="1.8.5")
KUBERNETES = Provider(
    name="hashicorp/kubernetes", variable="STACKYARD_TEST_KUBERNETES_PROVIDER", version="2.38.0"
)
TLS = Provider(name="hashicorp/tls", variable="STACKYARD_TEST_TLS_PROVIDER", version="4.3.0")
LOCAL = Provider(name="hashicorp/local", variable="STACKYARD_TEST_LOCAL_PROVIDER", version="2.9.0")
PROXMOX = Provider(name="bpg/proxmox", variable="STACKYARD_TEST_BPG", version="0.111.1")


def mirror(folder: Path, *providers: Provider, flavour: Flavour = Flavour.TOFU) -> Path:
    """Lay out the binaries of providers as an engine installs them; return the engine's settings for that.

    The test is skipped if the environment does not name one of them.
    """
    binaries = {provider: provider.require() for provider in providers}
    asking = folder / "asking"
    asking.mkdir(parents=True)
    rows = "".join(f'    p{i} = {{ source = "{one.name}" }}\n' for i, one in enumerate(providers))
    (asking / "main.tf").write_text(f"terraform {{\n  required_providers {{\n{rows}  }}\n}}\n")
    engine = real_engine(flavour).path
    # The engine says which registry it would ask for each.
    said = subprocess.run(
        [engine, "providers"], cwd=asking, capture_output=True, text=True, check=True
    ).stdout
    hosts = {name: host for host, name in re.findall(r"provider\[([^/\]]+)/([^\]]+)\]", said)}
    for provider, binary in binaries.items():
        found = re.search(r"_v(\d+\.\d+\.\d+)", binary.name)
        version = found[1] if found else provider.version
        place = folder / "mirror" / hosts[provider.name] / provider.name / version / "linux_amd64"
        place.mkdir(parents=True)
        kind = provider.name.partition("/")[2]
        (place / f"terraform-provider-{kind}_v{version}").symlink_to(binary)
    settings = folder / "mirror.tfrc"
    settings.write_text(f'provider_installation {{\n  filesystem_mirror {{ path = "{folder}/mirror" }}\n}}\n')
    return settings


def copy_stack(folder: Path, recipe: str, name: str) -> StackRepo:
    """Make a repository with the modules and one stack, whose state is in the store of stackyard."""
    backend = 'terraform {\n  backend "http" {}\n}\n'
    repo = make_repo(folder, {f"stacks/{name}/backend.tf": backend})
    shutil.copytree(RECIPES / "modules", repo.root / "modules")
    shutil.copytree(RECIPES / "stacks" / recipe, repo.root / "stacks" / name, dirs_exist_ok=True)
    repo.commit("recipe")
    return repo
