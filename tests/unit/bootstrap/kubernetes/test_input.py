"""The plan of a cluster, from its files: charts, the flux-operator, the access to the repository."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import yaml
from tests.support.clusters import write_cluster
from tests.support.ports import free_port
from tests.support.programs import write_program

from stackyard.bootstrap.kubernetes import KubernetesPlan
from stackyard.bootstrap.kubernetes.input import make_kubernetes_plan
from stackyard.bootstrap.kubernetes.network import TwoNetworksError
from stackyard.bootstrap.kubernetes.secrets import SecretValueError
from stackyard.clients.kubernetes import refer_to
from stackyard.secrets import Keyring, create_sops_file, new_identity
from stackyard.sources.cluster.bootstrap_file import load_bootstrap
from stackyard.sources.cluster.load import load_cluster

PAGE = Path(__file__).parents[4] / "docs" / "howto" / "talos-up.md"
RECIPIENT, IDENTITY = new_identity()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cluster with secrets, and programs that print one object with what they were asked for."""
    made = 'printf \'apiVersion: v1\\nkind: ConfigMap\\nmetadata: {name: made}\\ndata: {argv: "%s"}\\n\' "$*"'
    values = f'cat > {tmp_path}/values-"$2"'
    write_program(tmp_path / "programs" / "helm", f"{values}; {made}")
    write_program(tmp_path / "programs" / "flux", made)
    monkeypatch.setenv("PATH", f"{tmp_path / 'programs'}:/usr/bin:/bin")
    (tmp_path / "cluster").mkdir()
    folder = write_cluster(tmp_path / "cluster")
    secrets = {"git_token": "glpat-value", "proxmox_api_token_id": "a@pve!b", "proxmox_api_token_secret": "c"}
    create_sops_file(folder / "cluster.sops.yaml", yaml.safe_dump(secrets).encode(), (RECIPIENT,))
    return folder


async def plan(folder: Path, text: str) -> KubernetesPlan:
    (folder / "bootstrap.yaml").write_text(dedent(text))
    keyring = Keyring(env={"HOME": str(folder), "SOPS_AGE_KEY": IDENTITY})
    cluster = load_cluster(folder, keyring=keyring)
    return await make_kubernetes_plan(cluster, load_bootstrap(folder), keyring)


def argv(objects: tuple[Any, ...]) -> str:
    return str(objects[0]["data"]["argv"])


async def test_charts_are_rendered_for_the_version_of_the_cluster_with_values_of_encrypted_files(
    folder: Path, tmp_path: Path
) -> None:
    own = b"password: hunter22\nreplicas: 1\n"
    create_sops_file(folder / "values.sops.yaml", own, (RECIPIENT,))
    made = await plan(
        folder,
        """
        network: none
        charts:
          - {name: one, chart: ./one, namespace: one, values: {replicas: 2}, values_file: values.sops.yaml}
          - {name: two, chart: oci://r.example.net/two, version: 1.2.3, after: [one]}
        """,
    )
    one, two = made.charts
    assert made.network == ()
    assert f"template one {folder}/one --namespace one" in argv(one.objects)
    assert "--kube-version 1." in argv(one.objects)
    assert "--version 1.2.3" in argv(two.objects)
    assert two.after == ("one",)
    assert yaml.safe_load((tmp_path / "values-one").read_text()) == {"password": "hunter22", "replicas": 2}
    assert "hunter22" not in repr(made)


@pytest.mark.parametrize(
    "patch",
    ["cluster: {network: {cni: {name: flannel}}}\n", "apiVersion: v1alpha1\nkind: KubeFlannelCNIConfig\n"],
)
async def test_a_network_that_talos_brings_gets_no_second_one(patch: str, folder: Path) -> None:
    (folder / "talos" / "patches" / "global").mkdir(parents=True)
    (folder / "talos" / "patches" / "global" / "cni.yaml").write_text(patch)
    with pytest.raises(TwoNetworksError, match="brings flannel, and `up` would add Cilium"):
        await plan(folder, "charts: []")
    assert (await plan(folder, "network: none")).network == ()


async def test_the_operator_comes_as_a_chart_and_makes_flux_of_the_version(folder: Path) -> None:
    made = await plan(
        folder,
        "flux: {operator: {version: 0.33.0}, version: 2.7.x, components: [source-controller]}",
    )
    assert "charts/flux-operator --namespace flux-system --version 0.33.0" in argv(made.operator)
    (instance,) = made.flux
    assert refer_to(instance).kind == "FluxInstance"
    assert instance["spec"]["components"] == ["source-controller"]
    assert instance["spec"]["distribution"]["version"] == "2.7.x"


async def test_the_program_makes_flux_of_the_version(folder: Path) -> None:
    made = await plan(folder, "flux: {version: v2.7.3, components: [source-controller]}")
    assert argv(made.flux) == "install --export --version=v2.7.3 --components=source-controller"
    assert made.source is None


async def test_the_token_of_the_repository_is_the_secret_that_is_named_or_the_usual_one(
    folder: Path,
) -> None:
    (folder / "ca.pem").write_text("PEM\n")
    url = f"https://127.0.0.1:{free_port()}/a.git"
    for token in ("", ", token: git_token"):
        made = await plan(folder, f"flux: {{url: '{url}', username: me, authority: ca.pem, tag: v1{token}}}")
        assert made.source is not None
        assert made.source.access is not None
        access = made.source.access
        assert (access.username, access.token, access.authority_pem) == ("me", "glpat-value", "PEM\n")
        assert made.source.reference == {"tag": "v1"}
    with pytest.raises(SecretValueError, match="`github_token`"):
        await plan(folder, f"flux: {{url: '{url}', token: github_token}}")


async def test_a_deploy_key_may_be_encrypted(folder: Path) -> None:
    create_sops_file(folder / "deploy.key", b"-----BEGIN KEY-----\n", (RECIPIENT,))
    (folder / "hosts").write_text("[127.0.0.1]:1 ssh-ed25519 AAAA\n")
    url = f"ssh://git@127.0.0.1:{free_port()}/a.git"
    made = await plan(folder, f"flux: {{url: '{url}', deploy_key: deploy.key, known_hosts: hosts}}")
    assert made.source is not None
    assert made.source.access is not None
    assert made.source.access.private_key == "-----BEGIN KEY-----\n"
    assert made.source.access.token == "", "a token is not sent where a key opens"


async def test_every_example_of_the_page_can_be_read(folder: Path) -> None:
    # The others are objects of Kubernetes.
    blocks = re.findall(r"```yaml\n(?!apiVersion)(.*?)```", PAGE.read_text(), re.DOTALL)
    inline = re.findall(r"`((?:network|flux): [^`]+)`", PAGE.read_text())
    assert len(blocks) >= 3
    assert len(inline) > 4
    (folder / "kubernetes" / "bootstrap").mkdir(parents=True)
    for name in ("FILE", "github-deploy.key", "known_hosts", "forge-ca.pem"):
        (folder / name).write_text("a\n")
    for name in ("cilium.yaml", "secrets.sops.yaml"):
        (folder / "kubernetes" / "bootstrap" / name).write_text("a\n")
    for text in (*blocks, *inline):
        (folder / "bootstrap.yaml").write_text(text)
        load_bootstrap(folder)
