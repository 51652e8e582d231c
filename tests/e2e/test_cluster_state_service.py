"""A cluster whose state is behind a state service: the same state for stackyard and for plain OpenTofu."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import yaml
from tests.support.cli import stackyard
from tests.support.cluster_repo import ClusterRepo, cluster_on_lab
from tests.support.forking import write_forked_program
from tests.support.judges import find_judge
from tests.support.lab import proxmoxer_client
from tests.support.state_process import StateProcess, start_service

from stackyard.secrets import Keyring, read_secrets

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[ClusterRepo]:
    with cluster_on_lab(tmp_path) as made:
        yield made


@contextlib.asynccontextmanager
async def _serving(tmp_path: Path) -> AsyncIterator[StateProcess]:
    started = await start_service("--plain-http", data=tmp_path / "states")
    try:
        yield started
    finally:
        await started.stop()


def _login(tmp_path: Path, name: str = "terraform") -> str:
    words = ("state", "token", "create", name, "--allow", "read,write,lock,break")
    made = stackyard(*words, "--data", str(tmp_path / "states"), "--json").document
    return str(made["token"])


def _describe(repo: ClusterRepo, service: StateProcess, password: str) -> None:
    repo.describe(
        tfstate_address=f"{service.url}/states/proxmox",
        tfstate_username="terraform",
        tfstate_password=password,
    )
    repo.run("cluster", "configure")


def _secrets(repo: ClusterRepo) -> dict[str, str]:
    keyring = Keyring(env={**os.environ, "SOPS_AGE_KEY_FILE": str(repo.root / "age.key")})
    return read_secrets(repo.root / "infrastructure/secrets.sops.yaml", keyring).data


async def test_plain_opentofu_works_on_the_state_of_the_target(repo: ClusterRepo, tmp_path: Path) -> None:
    async with _serving(tmp_path) as service:
        _describe(repo, service, _login(tmp_path))
        repo.run("apply", "home", "--yes")
        secrets = _secrets(repo)
        folder = repo.root / "infrastructure/tofu"
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "TF_HTTP_USERNAME": secrets["tfstate_username"],
            "TF_HTTP_PASSWORD": secrets["tfstate_password"],
        }
        # The provider is not asked: the state and its addresses are what both share.
        (folder / ".terraform").mkdir(exist_ok=True)
        listed = subprocess.run(
            [repo.env["STACKYARD_TOFU"], "state", "pull"],
            cwd=folder,
            env={**environment, "TF_DATA_DIR": str(_data_folder(repo))},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        assert '"talos_node"' in listed.stdout
        assert '"index_key":"k8s-0"' in listed.stdout
        states = stackyard("state", "list", "--data", str(tmp_path / "states"), "--json").document
        assert [one["name"] for one in states["states"]] == ["proxmox"]
        assert repo.actions("home") == {}


def _data_folder(repo: ClusterRepo) -> Path:
    found = list((repo.root / ".stackyard/work").rglob("terraform.tfstate"))
    assert len(found) == 1
    return found[0].parent


async def test_wrong_credentials_say_where_they_are_kept(repo: ClusterRepo, tmp_path: Path) -> None:
    async with _serving(tmp_path) as service:
        _login(tmp_path)
        _describe(repo, service, "wrong-password")
        refused = repo.run("infra", "plan", status=1)
        assert "E-BACKEND-LOGIN" in refused.stderr
        assert "secrets.sops.yaml" in refused.stderr
        assert "wrong-password" not in refused.stdout + refused.stderr


async def test_credentials_are_rotated_with_one_verb(repo: ClusterRepo, tmp_path: Path) -> None:
    async with _serving(tmp_path) as service:
        _describe(repo, service, _login(tmp_path))
        repo.run("apply", "home", "--yes")
        before = (repo.root / "infrastructure/secrets.sops.yaml").read_text()
        data = str(tmp_path / "states")
        rotated = repo.json("infra", "rotate-credentials", "--data", data)
        assert (rotated["principal"], rotated["former"]) == ("terraform-r1", ["terraform"])
        known = stackyard("state", "token", "list", "--data", data, "--json").document["principals"]
        assert "terraform-r1" in {one["name"] for one in known}
        assert "terraform" not in {one["name"] for one in known}
        after = (repo.root / "infrastructure/secrets.sops.yaml").read_text()
        # Only the two values changed their encrypted form.
        kept = ("proxmox_api_token_id", "proxmox_api_token_secret")
        assert all(yaml.safe_load(before)[name] == yaml.safe_load(after)[name] for name in kept)
        assert repo.actions("home") == {}
        assert repo.json("cluster", "configure")["written"] == []


@pytest.mark.judges("task")
def test_the_tasks_of_the_original_are_spelled_as_they_were(repo: ClusterRepo, tmp_path: Path) -> None:
    task = find_judge("task")
    repo.run("cluster", "configure")
    programs = tmp_path / "programs"
    programs.mkdir()
    write_forked_program(programs / "stackyard")
    environment = {**os.environ, **repo.env, "PATH": f"{programs}:{os.environ['PATH']}"}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(task), *words], cwd=repo.root, env=environment, capture_output=True, text=True, timeout=120
        )

    planned = run("infra:plan", "--", "-detailed-exitcode")
    assert planned.returncode != 0, planned.stderr
    assert "4 to create" in planned.stdout
    applied = run("infra:apply")
    assert applied.returncode == 0, applied.stderr
    assert run("configure").returncode == 0
    assert run("infra:verify-nodes").returncode == 0


async def test_without_its_state_service_a_saved_plan_makes_nothing(
    repo: ClusterRepo, tmp_path: Path
) -> None:
    async with _serving(tmp_path) as service:
        _describe(repo, service, _login(tmp_path))
        repo.run("infra", "plan")
    refused = repo.json("infra", "apply", status=69)["error"]
    assert refused["code"] == "E-BACKEND-UNREACHABLE"
    assert proxmoxer_client(repo.running).cluster.resources.get(type="vm") == []
