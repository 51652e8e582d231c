"""The page for people with a cluster-template repository is true: its commands bring a cluster over."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.cli import stackyard
from tests.support.cluster_repo import ClusterRepo, cluster_on_lab
from tests.support.pages import Reader
from tests.support.state_process import start_service

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

PAGE = "docs/coming-from/cluster-template.md"
# What a reader looks for in what a block prints.
EXPECTED = (
    ("validate", "home is valid", "in clear on this machine only"),
    ("--check", "main.tf: it is there already and was not written by stackyard"),
    (
        "--overwrite",
        "wrote infrastructure/tofu/main.tf",
        "Taskfile.yaml do not run stackyard",
        "Nothing to change",
    ),
    ("state move", "Nothing to change"),
    ("Taskfile.yaml", "wrote Taskfile.yaml", "wrote .taskfiles/infrastructure/Taskfile.yaml"),
    ("split", "proxmox_api_token_secret", "Nothing to change"),
)


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[ClusterRepo]:
    with cluster_on_lab(tmp_path) as made:
        yield made


def _make_theirs(repo: ClusterRepo) -> None:
    """Leave the repository as another program had generated it: other text, and no record of ours."""
    (repo.root / "infrastructure/.stackyard-generated.json").unlink()
    shutil.rmtree(repo.root / ".stackyard")
    main = repo.root / "infrastructure/tofu/main.tf"
    main.write_text(f"# Rendered from templates/config/infrastructure/tofu/main.tf.j2\n{main.read_text()}")
    root, tasks = repo.root / "Taskfile.yaml", repo.root / ".taskfiles/infrastructure/Taskfile.yaml"
    root.write_text("version: '3'\nincludes:\n  infra: .taskfiles/infrastructure\n")
    tasks.write_text("version: '3'\ntasks:\n  plan:\n    cmd: tofu plan -out=tfplan\n")
    for key, value in {"user.name": "t", "user.email": "t@example.org"}.items():
        repo.git("config", key, value)
    repo.commit("as it was")


async def test_the_page_can_be_followed_and_no_plan_has_a_change(repo: ClusterRepo, tmp_path: Path) -> None:
    service = await start_service("--plain-http", data=tmp_path / "worker")
    try:
        words = ("state", "token", "create", "terraform", "--allow", "read,write,lock")
        made = stackyard(*words, "--data", str(tmp_path / "worker"), "--json").document
        old = {"TF_HTTP_USERNAME": "terraform", "TF_HTTP_PASSWORD": str(made["token"])}
        address = f"{service.url}/states/proxmox"
        repo.describe(
            tfstate_address=address, tfstate_username="terraform", tfstate_password=str(made["token"])
        )
        repo.run("cluster", "configure", "--no-init")
        repo.run("infra", "apply-auto")
        _make_theirs(repo)
        reader = Reader(repo.root, tmp_path / "bin", {**repo.env, **old, "OLD": address})
        for (block, printed), (command, *expected) in zip(reader.follow(PAGE), EXPECTED, strict=True):
            assert command in block.script
            assert [word for word in expected if word not in printed] == [], f"{block.script}\n{printed}"
    finally:
        await service.stop()


_TEMPLATE = "templates/config/infrastructure/tofu/main.tf.j2"


def _write_original_shape(repo: ClusterRepo) -> None:
    """Use code with what the original lacks and has otherwise, by our way of templates."""
    code = (repo.root / "infrastructure/tofu/main.tf").read_text()
    # No address before there is a configuration.
    code = re.sub(r"  initialization \{.*?\n  \}\n", "", code, flags=re.DOTALL)
    # The name of the image, its fate, and changes of the drive that are ignored.
    code = code.replace("each.value.file_name\n", '"talos-v${var.talos_version}-ce4c980550dd.iso"\n')
    code = code.replace("overwrite          = false", "overwrite          = true")
    code = re.sub(r"  lifecycle \{.*?\n  \}\n", "", code, count=1, flags=re.DOTALL)
    code = re.sub(r"ignore_changes = \[.*\]\n", "ignore_changes = [started, cdrom]\n", code)
    # The card tags although Talos does.
    code = code.replace("= var.node_vlan_tag", "= 42")
    assert "initialization {" not in code
    repo.write({_TEMPLATE: code})


def test_vms_of_the_original_are_taken_over_without_a_replacement(repo: ClusterRepo) -> None:
    repo.describe(nodes=[repo.node(0), repo.node(1, proxmox_node="pve1")], node_vlan_tag=42)
    repo.run("cluster", "configure")
    _write_original_shape(repo)
    repo.run("cluster", "configure")
    repo.run("infra", "apply-auto", "--no-verify")
    (repo.root / _TEMPLATE).unlink()
    repo.run("cluster", "configure")
    actions = repo.actions("home")
    assert {address.partition("[")[0].partition(".")[2]: action for address, action in actions.items()} == {
        "talos_iso": "replace",
        "talos_node": "update",
    }
    # The drives change before the old image is deleted, and no VM reboots: no permit is needed.
    repo.run("apply", "home", "--yes", "--no-verify")
    assert repo.actions("home") == {}
