"""`stackyard cluster`: what its commands show a human and a program."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.cli import stackyard
from tests.support.clusters import node, write_cluster
from tests.support.stacks import git

from stackyard.cli.commands.cluster.schema import FILES
from stackyard.secrets import new_identity
from stackyard.sources.cluster import schema


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    home = tmp_path / "home"
    home.mkdir()
    return {"HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config")}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "made"
    made.mkdir()
    (made / ".git").mkdir()
    return made


def test_a_new_cluster_is_valid_and_nothing_is_overwritten(folder: Path, env: dict[str, str]) -> None:
    made = stackyard("--json", "cluster", "init", "--name", "home", cwd=folder, env=env)
    assert made.document["files"] == [".sops.yaml", "cluster.sops.yaml", "cluster.yaml", "nodes.yaml"]
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}

    again = stackyard("--json", "cluster", "init", cwd=folder, env=env)
    checked = stackyard("--json", "cluster", "validate", cwd=folder, env=env)

    assert again.document["error"]["code"] == "E-CLUSTER-EXISTS"
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before
    assert [(one["name"], one["controllers"]) for one in checked.document["clusters"]] == [("home", 3)]


def test_flux_can_read_the_secrets_of_a_new_cluster(folder: Path, env: dict[str, str]) -> None:
    stackyard("cluster", "init", cwd=folder, env=env)
    editor = {**env, "SOPS_EDITOR": "sed -i '$ a cloudflare_token: cf-token-1'"}
    assert stackyard("secrets", "edit", "cluster.sops.yaml", cwd=folder, env=editor).status == 0
    assert stackyard("cluster", "configure", "--no-init", cwd=folder, env=env).status == 0
    secrets = sorted((folder / "kubernetes").rglob("secret.sops.yaml"))
    assert secrets
    for secret in secrets:
        assert {"apiVersion: v1", "kind: Secret"} <= set(secret.read_text().splitlines())


def test_a_new_cluster_of_machines_needs_no_proxmox(folder: Path, env: dict[str, str]) -> None:
    stackyard("cluster", "init", "clusters/metal", "--bare-metal", cwd=folder, env=env)

    shown = stackyard("--json", "cluster", "show", "metal", cwd=folder, env=env).document

    assert shown["proxmox_api_url"] is None
    assert {one["proxmox_node"] for one in shown["nodes"]} == {None}


@pytest.mark.parametrize("name", ["7", "on"])
def test_a_name_that_yaml_reads_as_something_else_is_a_name(
    name: str, folder: Path, env: dict[str, str]
) -> None:
    assert stackyard("cluster", "init", "--name", name, cwd=folder, env=env).status == 0
    assert stackyard("--json", "cluster", "show", name, cwd=folder, env=env).document["name"] == name


def test_a_new_cluster_cannot_have_a_name_that_is_none_and_nothing_is_written(
    folder: Path, env: dict[str, str]
) -> None:
    ended = stackyard("--json", "cluster", "init", "--name", "My cluster: a", cwd=folder, env=env)
    assert (ended.status, ended.document["error"]["code"]) == (64, "E-USAGE")
    assert [path.name for path in folder.iterdir()] == [".git"]


@pytest.mark.parametrize(("count", "controllers"), [(1, 1), (2, 1), (5, 3)])
def test_a_count_of_nodes_becomes_names_once(
    folder: Path, env: dict[str, str], count: int, controllers: int
) -> None:
    stackyard("cluster", "init", "--nodes", str(count), cwd=folder, env=env)

    shown = stackyard("--json", "cluster", "show", cwd=folder, env=env).document

    assert [one["name"] for one in shown["nodes"]] == [f"k8s-{number + 1}" for number in range(count)]
    assert [one["role"] for one in shown["nodes"]].count("controller") == controllers


def test_further_clusters_of_a_repository_have_names_and_addresses_of_their_own(
    folder: Path, env: dict[str, str]
) -> None:
    for name in ("prod", "stage", "test"):
        started = stackyard("cluster", "init", f"clusters/{name}", cwd=folder, env=env)
        assert started.status == 0, started.stderr
    checked = stackyard("--json", "cluster", "validate", cwd=folder, env=env)
    assert checked.status == 0, checked.stdout
    assert checked.document["warnings"] == []
    shown = stackyard("--json", "cluster", "show", "stage", cwd=folder, env=env).document
    assert [one["name"] for one in shown["nodes"]] == ["stage-1", "stage-2", "stage-3"]
    assert [one["address"] for one in shown["nodes"]] == [f"192.168.1.{55 + number}" for number in range(3)]
    assert "# vm_id: 105" in (folder / "clusters/stage/nodes.yaml").read_text()


def test_vms_of_two_clusters_with_one_name_are_a_warning(folder: Path) -> None:
    for number, name in enumerate(("a", "b"), 1):
        (folder / "clusters" / name).mkdir(parents=True)
        network = {"node_cidr": f"192.0.{number}.0/24", "cluster_api_addr": f"192.0.{number}.10"}
        write_cluster(folder / "clusters" / name, nodes=[node(1, address=f"192.0.{number}.21")], **network)
    checked = stackyard("--json", "cluster", "validate", cwd=folder)
    assert checked.status == 0
    assert [one["code"] for one in checked.document["warnings"]] == ["W-CLUSTER-SHARED-NAME"]


def test_a_cluster_for_a_lab_needs_one_whose_vms_boot_talos(folder: Path, env: dict[str, str]) -> None:
    refused = stackyard("--json", "cluster", "init", "--lab", "none", cwd=folder, env=env)

    assert refused.status == 64
    assert "--factory-port" in refused.document["error"]["remedy"]
    assert not (folder / "cluster.yaml").exists()


def test_validate_reports_every_problem_of_every_cluster(folder: Path) -> None:
    for name in ("a", "b"):
        (folder / "clusters" / name).mkdir(parents=True)
        write_cluster(folder / "clusters" / name, nodes=[node(1, vm_id=101)])

    found = stackyard("--json", "cluster", "validate", cwd=folder)

    assert found.status == 65
    codes = sorted({one["code"] for one in found.document["error"]["diagnostics"]})
    assert codes == ["E-CLUSTER-SHARED-ADDRESS", "E-CLUSTER-SHARED-VM-ID", "W-CLUSTER-SHARED-NAME"]
    assert stackyard("cluster", "validate", "a", cwd=folder).status == 0


def test_a_cluster_with_addresses_of_another_one_is_not_planned(folder: Path) -> None:
    for name in ("a", "b"):
        (folder / "clusters" / name).mkdir(parents=True)
        write_cluster(folder / "clusters" / name, nodes=[node(1)])
    refused = stackyard("--json", "plan", "cluster:b", cwd=folder)
    assert refused.status == 65
    assert {
        (one["code"], one["where"]["file"].partition("/")[2])
        for one in refused.document["error"]["diagnostics"]
        if one["code"].startswith("E-")
    } == {("E-CLUSTER-SHARED-ADDRESS", "b/cluster.yaml"), ("E-CLUSTER-SHARED-ADDRESS", "b/nodes.yaml")}


def test_two_clusters_cannot_have_one_state(folder: Path) -> None:
    for number, name in enumerate(("a", "b"), 1):
        (folder / "clusters" / name).mkdir(parents=True)
        write_cluster(
            folder / "clusters" / name,
            nodes=[node(1, name=f"{name}-1", address=f"192.0.{number}.21")],
            node_cidr=f"192.0.{number}.0/24",
            cluster_api_addr=f"192.0.{number}.10",
            tfstate_address="https://state.example.com/s",
        )

    found = stackyard("--json", "cluster", "validate", cwd=folder).document

    assert [one["code"] for one in found["error"]["diagnostics"]] == ["E-CLUSTER-SAME-STATE"]


def test_show_says_where_secrets_are(folder: Path) -> None:
    write_cluster(folder, nodes=[node(1)], tfstate_password="hunter2hunter2")

    shown = stackyard("cluster", "show", cwd=folder)

    assert "recovery from git cannot see them" in " ".join(shown.stdout.split())
    assert "hunter2" not in shown.stdout + shown.stderr
    secrets = stackyard("--json", "cluster", "show", cwd=folder).document["secrets"]
    assert secrets == {"place": "local", "names": ["tfstate_password"]}


def test_configure_says_that_git_holds_secrets_in_clear(folder: Path, env: dict[str, str]) -> None:
    own = {"tfstate_address": "https://state.example.com/s", "tfstate_password": "hunter2hunter2"}
    write_cluster(folder, nodes=[node(1)], proxmox_api_url=None, proxmox_node=None, **own)
    (folder / "age.key").write_text(f"{new_identity()[1]}\n")
    configure = ("--json", "cluster", "configure", "--no-init")
    assert stackyard(*configure, cwd=folder, env=env).document["warnings"] == []
    for words in (("init", "--quiet"), ("add", "--force", "cluster.yaml")):
        git(folder, *words)
    said = stackyard(*configure, cwd=folder, env=env)
    assert ["`tfstate_password` in clear" in one for one in said.document["warnings"]] == [True]
    assert "hunter2" not in said.stdout + said.stderr


@pytest.mark.parametrize(
    ("form", "expected"),
    [("tree", "└── pve"), ("mermaid", 'subgraph h0["pve"]'), ("dot", '"kubernetes" -> "k8s-1";')],
)
def test_show_draws_the_hosts_and_their_nodes(folder: Path, form: str, expected: str) -> None:
    write_cluster(folder)

    assert expected in stackyard("cluster", "show", f"--graph={form}", cwd=folder).stdout


def test_explain_shows_the_level_and_the_line_of_each_value(folder: Path) -> None:
    write_cluster(folder, nodes=[node(1, vm_cores=6)], proxmox_vm_defaults={"memory": 4096})

    document = stackyard("--json", "cluster", "explain", "k8s-1", cwd=folder).document

    found = {one["field"]: (one["value"], one["level"], one["line"]) for one in document["values"]}
    assert found["vm_cores"] == (6, "node", 8)
    assert found["vm_memory"] == (4096, "cluster", 6)
    assert found["vm_disk_size"] == (64, "built-in", None)
    assert found["proxmox_node"] == ("pve", "cluster", 4)


def test_explain_of_the_cluster_shows_no_secret(folder: Path) -> None:
    write_cluster(folder, nodes=[node(1)], tfstate_password="hunter2hunter2")

    shown = stackyard("cluster", "explain", cwd=folder).stdout

    assert "tfstate_password" in shown
    assert "hunter2" not in shown


@pytest.mark.parametrize("name", ["node_cidr", "network.node_cidr", "vm_cores", "proxmox_vm_defaults.cores"])
def test_explain_says_what_a_field_is_for_without_a_cluster(tmp_path: Path, name: str) -> None:
    assert stackyard("--json", "cluster", "explain", name, cwd=tmp_path).document["words"]


def test_explain_suggests_what_was_meant(folder: Path) -> None:
    write_cluster(folder)

    said = stackyard("cluster", "explain", "node_cdir", cwd=folder)

    assert said.status == 64
    assert "`node_cidr`" in said.stderr


def test_without_a_cluster_the_error_says_how_to_start_one(tmp_path: Path) -> None:
    said = stackyard("cluster", "validate", cwd=tmp_path)

    assert said.status == 65
    assert "stackyard cluster init" in said.stderr


def test_every_file_has_a_schema() -> None:
    assert list(FILES) == list(schema.FILES)
    for name in FILES:
        assert stackyard("--json", "cluster", "schema", name).document["$schema"]


def test_a_snapshot_is_encrypted_for_somebody_or_not_at_all(folder: Path, env: dict[str, str]) -> None:
    stackyard("cluster", "init", cwd=folder, env=env)
    _, recipient = new_identity()
    words = ("cluster", "snapshot", "--unencrypted", "--recipient", recipient)
    refused = stackyard("--json", *words, cwd=folder, env=env)
    assert refused.status == 64
    assert "exclude each other" in refused.document["error"]["detail"]
