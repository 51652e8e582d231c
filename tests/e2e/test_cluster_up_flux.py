"""`cluster up` with what comes after Kubernetes: the default network, Flux from git, and what is missing."""

from __future__ import annotations

import asyncio
import base64
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.cluster_repo import ClusterRepo, cluster_on_lab
from tests.support.git_ssh import GitHost, serve_git
from tests.support.kubernetes_boot import DATA, FILES
from tests.support.lab import proxmoxer_client
from tests.support.programs import write_program
from tests.support.repositories import git, new_repository

from stackyard.bootstrap.kubernetes import CILIUM_VERSION
from stackyard.clients.kubernetes import KubernetesClient, ObjectReference, parse_kubeconfig
from stackyard.secrets import Keyring, create_sops_file, new_identity
from stackyard.secrets.sops.age import recipient_of

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

# In the shape of what helm renders of Cilium: an agent on every node, which has the folder of plugins.
CILIUM = """
apiVersion: v1
kind: ServiceAccount
metadata: {name: cilium}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: cilium}
rules: []
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: cilium}
spec:
  selector: {matchLabels: {k8s-app: cilium}}
  template:
    metadata: {labels: {k8s-app: cilium}}
    spec:
      hostNetwork: true
      tolerations: [{operator: Exists}]
      containers: [{name: cilium-agent, image: "example.com/cilium:v1"}]
      volumes: [{name: cni-path, hostPath: {path: /opt/cni/bin}}]
"""


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[ClusterRepo]:
    """A cluster without a bootstrap.yaml, on a machine with git and ssh, and with neither helm nor flux."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("git", "ssh", "sh"):
        if found := shutil.which(name):
            (programs / name).symlink_to(found)
    with cluster_on_lab(tmp_path) as made:
        made.env["PATH"] = str(programs)
        yield made


def add_helm(repo: ClusterRepo, rendered: str) -> Path:
    """Put a helm on PATH that prints manifests; return the file with what it was asked for."""
    asked = repo.root / ".stackyard" / "helm"
    asked.parent.mkdir(exist_ok=True)
    (asked.parent / "rendered.yaml").write_text(rendered)
    cat, script = shutil.which("cat"), f'echo "$@" >> {asked}; while read -r line; do :; done\n'
    write_program(Path(repo.env["PATH"]) / "helm", f"{script}{cat} {asked.parent / 'rendered.yaml'}")
    return asked


@pytest.mark.parametrize(
    ("bootstrap", "code"),
    [
        ("", "E-CLUSTER-NETWORK"),
        ("network: none\nflux: {}\n", "E-CLUSTER-FLUX-MISSING"),
        ("network: none\ncharts: [{name: a, chart: ./a}]\n", "E-CLUSTER-HELM"),
        ("network: none\nflux: {url: 'https://127.0.0.1:1/a', token: git_token}\n", "E-CLUSTER-SECRET"),
    ],
)
def test_what_is_missing_for_kubernetes_is_said_before_any_vm_exists(
    bootstrap: str, code: str, repo: ClusterRepo
) -> None:
    if bootstrap:
        repo.write({"bootstrap.yaml": bootstrap})
    error = repo.json("cluster", "up", "--yes", status=None)["error"]
    assert error["code"] == code, error
    assert proxmoxer_client(repo.running).cluster.resources.get(type="vm") == []


def test_a_cluster_that_says_nothing_of_its_network_comes_up_with_cilium(repo: ClusterRepo) -> None:
    asked = add_helm(repo, CILIUM)
    first = repo.json("cluster", "up", "--yes")
    assert [row["outcome"] for row in first["steps"] if row["step"] == "network"] == ["done"]
    assert first["steps"][-1]["step"] == "nodes-ready", "no cluster is up with nodes that are not ready"
    assert f"--version {CILIUM_VERSION}" in asked.read_text()
    assert "--namespace kube-system" in asked.read_text()
    assert repo.json("cluster", "up", "--yes")["has_changes"] is False


async def test_flux_applies_the_repository_of_the_user_with_the_key_of_the_repository(
    repo: ClusterRepo, tmp_path: Path
) -> None:
    add_helm(repo, CILIUM)
    other = new_identity()[1]
    own = (repo.root / "age.key").read_text()
    (repo.root / "age.key").write_text(f"{other}\n{own}")
    recipient = recipient_of(Keyring(env={"SOPS_AGE_KEY": own}))
    assert recipient is not None
    repo.write({".sops.yaml": f"creation_rules: [{{age: {recipient}}}]\n"})
    content = new_repository(tmp_path / "content")
    commit(content, recipient)
    async with serve_git() as host:
        describe(repo, host, content)
        first = await asyncio.to_thread(repo.json, "cluster", "up", "--yes")
        assert {row["step"] for row in first["steps"]} >= {"flux", "sync", "reconciled", "secrets"}
        second = await asyncio.to_thread(repo.json, "cluster", "up", "--yes")
        assert second["has_changes"] is False
        kubeconfig = (await asyncio.to_thread(repo.run, "cluster", "kubeconfig")).stdout
        async with KubernetesClient(parse_kubeconfig(kubeconfig)) as client:
            assert await read(client, "default", "app", "password") == "hunter22"
            identities = await read(client, "flux-system", "sops-age", "age.agekey")
        assert identities == own, "the other key of the user opens other repositories"
        (content / "clusters/prod/apps/more.yaml").write_text(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more, namespace: default}\n"
        )
        save(content)
        third = await asyncio.to_thread(repo.json, "cluster", "up", "--yes")
        done = [row["step"] for row in third["steps"] if row["outcome"] == "done"]
        assert done == ["reconciled"], "Flux had not seen the new commit, whatever it said of the former one"


def commit(content: Path, recipient: str) -> None:
    for name, text in FILES.items():
        path = content / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (content / "clusters/prod/apps").mkdir()
    secret = (
        b"apiVersion: v1\nkind: Secret\nmetadata: {name: app, namespace: default}\ndata: {password: %s}\n"
    )
    plain = secret % base64.b64encode(b"hunter22")
    create_sops_file(content / "clusters/prod/apps/secret.yaml", plain, (recipient,))
    save(content)


def save(content: Path) -> None:
    git(content, "add", "--all")
    assert git(content, "commit", "--quiet", "--message", "change").returncode == 0


def describe(repo: ClusterRepo, host: GitHost, content: Path) -> None:
    (repo.root / "deploy.key").write_text(host.private_key)
    (repo.root / "known_hosts").write_text(host.known_hosts)
    shutil.copy(DATA / "flux.yaml", repo.root / "flux.yaml")
    repo.write(
        {
            "bootstrap.yaml": f"""
                flux:
                  manifests: flux.yaml
                  url: {host.url(content)}
                  deploy_key: deploy.key
                  known_hosts: known_hosts
                  folder: clusters/prod
                """
        }
    )


async def read(client: KubernetesClient, namespace: str, name: str, key: str) -> str:
    found: dict[str, Any] = await client.get(ObjectReference("v1", "Secret", name, namespace))
    return base64.b64decode(found["data"][key]).decode()
