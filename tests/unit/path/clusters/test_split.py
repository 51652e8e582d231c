"""`cluster split`: no value is lost, and nothing in clear comes to git, wherever it is stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stackyard.base import files
from stackyard.path.clusters.configure import configure
from stackyard.path.clusters.keys import make_keyring
from stackyard.path.clusters.split import SplitError, split_secrets
from stackyard.secrets import new_identity, read_secrets
from stackyard.sources.cluster import load_cluster
from stackyard.sources.cluster.fields import list_secret_names

TEXT = """\
# My cluster.
node_cidr: 10.0.0.0/24
cluster_api_addr: 10.0.0.10
cloudflare_domain: example.com   # ours
proxmox_api_url: https://pve.example.com:8006/api2/json
proxmox_node: pve
proxmox_api_token_id: terraform@pve!home
proxmox_api_token_secret: 0d3c7c9e-aaaa
tfstate_password: "hunter: 2"

# The end.
talos_version: 1.12.1
"""
SECRETS = {
    "proxmox_api_token_id": "terraform@pve!home",
    "proxmox_api_token_secret": "0d3c7c9e-aaaa",
    "tfstate_password": "hunter: 2",
}
NODES = """\
nodes:
  - name: k8s-0
    address: 10.0.0.20
    controller: true
    disk: /dev/sda
    mac_addr: bc:24:11:00:00:01
    schematic_id: ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    top = tmp_path / "repository"
    (top / ".git").mkdir(parents=True)
    (top / "age.key").write_text(f"{new_identity()[1]}\n")
    (top / "cluster.yaml").write_text(TEXT)
    (top / "nodes.yaml").write_text(NODES)
    (top / ".gitignore").write_text("/cluster.yaml\n/nodes.yaml\nage.key\n")
    return top


def split(folder: Path) -> tuple[str, ...]:
    return split_secrets(folder, list_secret_names()).moved


def test_secrets_move_and_everything_else_stays(folder: Path) -> None:
    assert split(folder) == tuple(sorted(SECRETS))
    text = (folder / "cluster.yaml").read_text()
    kept = [line for line in TEXT.splitlines() if line.partition(":")[0] not in SECRETS]
    assert text.splitlines() == kept
    assert read_secrets(folder / "cluster.sops.yaml", make_keyring(folder)).data == SECRETS
    assert (folder / ".gitignore").read_text() == "age.key\n"
    assert split(folder) == ()


def test_nothing_that_is_generated_changes(folder: Path) -> None:
    configure(load_cluster(folder, keyring=make_keyring(folder)))
    split(folder)
    cluster = load_cluster(folder, keyring=make_keyring(folder))
    assert cluster.are_secrets_in_git
    assert not configure(cluster).has_changes


@pytest.mark.parametrize("count", range(4))
def test_a_stopped_split_loses_no_value_and_is_continued(
    count: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, left = files.replace_file, [count]

    def write(path: Path, data: bytes, **options: Any) -> None:
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        real(path, data, **options)

    monkeypatch.setattr(files, "replace_file", write)
    with pytest.raises(KeyboardInterrupt):
        split(folder)
    monkeypatch.undo()
    has_clear = "0d3c7c9e-aaaa" in (folder / "cluster.yaml").read_text()
    sealed = read_secrets(folder / "cluster.sops.yaml", make_keyring(folder)).data
    assert has_clear or sealed == SECRETS
    assert "/cluster.yaml" in (folder / ".gitignore").read_text()
    split(folder)
    found = load_cluster(folder, keyring=make_keyring(folder)).secrets
    assert {name: found[name] for name in SECRETS} == SECRETS


def test_a_secret_in_a_comment_stops_the_split(folder: Path) -> None:
    (folder / "cluster.yaml").write_text(f"{TEXT}# was 0d3c7c9e-aaaa\n")
    with pytest.raises(SplitError) as caught:
        split(folder)
    assert caught.value.where is not None
    assert not (folder / "cluster.sops.yaml").exists()
    assert "/cluster.yaml" in (folder / ".gitignore").read_text()


def test_two_different_values_are_refused(folder: Path) -> None:
    split(folder)
    text = (folder / "cluster.yaml").read_text()
    (folder / "cluster.yaml").write_text(f"{text}tfstate_password: another-one\n")
    with pytest.raises(SplitError, match="tfstate_password"):
        split(folder)


def test_a_secret_that_shares_its_line_is_refused(folder: Path) -> None:
    (folder / "cluster.yaml").write_text("{node_cidr: 10.0.0.0/24, tfstate_password: hunter-two}\n")
    with pytest.raises(SplitError, match="line by line"):
        split(folder)
    assert not (folder / "cluster.sops.yaml").exists()


def test_files_of_other_clusters_stay_ignored(folder: Path) -> None:
    (folder / ".gitignore").write_text("cluster.yaml\n/nodes.yaml")
    report = split_secrets(folder, list_secret_names())
    assert set(report.unignored) == {"!/cluster.yaml", "/nodes.yaml"}
    assert (folder / ".gitignore").read_text() == "cluster.yaml\n!/cluster.yaml\n"
    # With secrets in clear again, it is ignored again.
    (folder / "cluster.sops.yaml").unlink()
    (folder / "cluster.yaml").write_text(TEXT)
    configure(load_cluster(folder, keyring=make_keyring(folder)))
    assert (folder / ".gitignore").read_text().splitlines()[-1] == "/cluster.yaml"


TOML = """\
# My cluster.
[network]
node_cidr = "10.0.0.0/24"

[kubernetes.api]
addr = "10.0.0.10"

[domain]
name = "example.com" # ours

[dns]
provider = "cloudflare"
token = "cloudflare-token-0123456789" # from the dashboard

[ingress]
mode = "none"

[proxmox]
api_url = "https://pve.example.com:8006/api2/json"
node = "pve"
api_token_id = "terraform@pve!home"
api_token_secret = \"\"\"\\
  0d3c7c9e-aaaa\"\"\"

[state]
password = "hunter: 2"

[[nodes]]
name = "k8s-0"
address = "10.0.0.20"
controller = true
disk = "/dev/sda"
mac_addr = "bc:24:11:00:00:01"
schematic_id = "ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515"
"""
IN_TOML = {**SECRETS, "cloudflare_token": "cloudflare-token-0123456789"}


@pytest.fixture
def toml_folder(folder: Path) -> Path:
    for name in ("cluster.yaml", "nodes.yaml"):
        (folder / name).unlink()
    (folder / "cluster.toml").write_text(TOML)
    (folder / ".gitignore").write_text("/cluster.toml\nage.key\n")
    return folder


def test_secrets_of_a_cluster_toml_move_and_everything_else_stays(toml_folder: Path) -> None:
    assert split(toml_folder) == tuple(sorted(IN_TOML))
    text = (toml_folder / "cluster.toml").read_text()
    gone = ("token =", "api_token", "  0d3c7c9e", "password")
    assert text.splitlines() == [line for line in TOML.splitlines() if not line.startswith(gone)]
    assert read_secrets(toml_folder / "cluster.sops.yaml", make_keyring(toml_folder)).data == IN_TOML
    assert (toml_folder / ".gitignore").read_text() == "age.key\n"
    assert split(toml_folder) == ()
    assert (toml_folder / "cluster.toml").read_text() == text


def test_nothing_that_is_generated_changes_with_a_cluster_toml(toml_folder: Path) -> None:
    configure(load_cluster(toml_folder, keyring=make_keyring(toml_folder)))
    split(toml_folder)
    cluster = load_cluster(toml_folder, keyring=make_keyring(toml_folder))
    assert cluster.are_secrets_in_git
    assert not configure(cluster).has_changes


def test_line_ends_of_a_cluster_toml_stay(toml_folder: Path) -> None:
    (toml_folder / "cluster.toml").write_bytes(TOML.replace("\n", "\r\n").encode())
    split(toml_folder)
    text = (toml_folder / "cluster.toml").read_bytes()
    assert text.count(b"\n") == text.count(b"\r\n") == TOML.count("\n") - 5


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('state = { password = "hunter-two", username = "me" }\ntop = 1\n', None),
        ('state = { password = "hunter-two", address = "https://x" }\n', "line by line"),
        ('[state]\npassword = "hunter-two"\n# was hunter-two\n', "somewhere else"),
        ('[state]\npassword = ["hunter-two"]\n', "no single value"),
        ('[state\npassword = "hunter-two"\n', "not valid TOML"),
    ],
)
def test_a_cluster_toml_is_split_or_refused_whole(text: str, said: str | None, toml_folder: Path) -> None:
    (toml_folder / "cluster.toml").write_text(text)
    if said is None:
        assert split(toml_folder) == ("tfstate_password", "tfstate_username")
        assert (toml_folder / "cluster.toml").read_text() == "top = 1\n"
        return
    with pytest.raises(SplitError, match=said) as caught:
        split(toml_folder)
    assert caught.value.where is not None
    assert "hunter-two" not in caught.value.detail
    assert (toml_folder / "cluster.toml").read_text() == text
    assert not (toml_folder / "cluster.sops.yaml").exists()


def test_both_forms_beside_each_other_are_refused(folder: Path) -> None:
    (folder / "cluster.toml").write_text(TOML)
    with pytest.raises(SplitError, match=r"cluster\.yaml and cluster\.toml"):
        split(folder)
