"""Secrets and configurations of a cluster: imported from other tools, and shown without a secret."""

from __future__ import annotations

from pathlib import Path

import yaml
from tests.support.cluster_repo import cluster_on_lab

from stackyard.path.clusters.keys import make_keyring
from stackyard.talosconfig.bundle import make_bundle, write_bundle
from stackyard.talosconfig.bundle_file import load_bundle


def test_secrets_of_talosctl_become_those_of_the_cluster_and_are_never_replaced(tmp_path: Path) -> None:
    bundle = make_bundle()
    with cluster_on_lab(tmp_path) as repo:
        repo.write({"secrets.yaml": write_bundle(bundle), "broken.yaml": "cluster: {id: x}\n"})
        assert repo.json("cluster", "import-secrets", "broken.yaml", status=65)["error"]
        imported = repo.json("cluster", "import-secrets", "secrets.yaml")
        assert imported["is_source_in_clear"] is True
        written = repo.root / "talos/talsecret.sops.yaml"
        assert "ENC[" in written.read_text()
        assert load_bundle(repo.root, make_keyring(repo.root)).values() == bundle.values()
        refused = repo.json("cluster", "import-secrets", "secrets.yaml", status=1)["error"]
        assert refused["code"] == "E-TALOS-SECRETS-EXIST"

        shown = repo.run("cluster", "machine-config", "k8s-0").stdout
        assert yaml.safe_load(shown.partition("\n---")[0])["machine"]["type"] == "controlplane"
        assert [value for value in bundle.values() if value in shown] == []
        repo.run("cluster", "machine-config", "k8s-0", "--out", "k8s-0.yaml")
        whole = (repo.root / "k8s-0.yaml").read_text()
        assert bundle.trustd_token in whole
        assert (repo.root / "k8s-0.yaml").stat().st_mode & 0o777 == 0o600
        repo.run("cluster", "machine-config", "k8s-9", status=64)
