"""Secrets for Kubernetes, and the tasks of go-task."""

from __future__ import annotations

from pathlib import Path

import yaml
from tests.support.resolved_clusters import make_cluster

from stackyard.render.cluster import render_kubernetes_secrets
from stackyard.render.cluster.quoting import quote_yaml
from stackyard.render.cluster.taskfile import render_taskfiles

FOLDER = Path("/srv/cluster")
TASKS = (
    "init plan apply apply-auto destroy output state-list force-unlock validate fmt fmt-check"
    " secrets-edit verify-nodes"
)


def test_each_app_gets_its_secret_under_the_name_that_its_chart_reads() -> None:
    secrets = {"cloudflare_token": 'a"b', "unifi_api_key": "u", "proxmox_csi_token_id": "csi@pve!k"}
    found = render_kubernetes_secrets(
        make_cluster(FOLDER, secrets={**secrets, "proxmox_csi_token_secret": "s3"})
    )
    manifests = {name: yaml.safe_load(data) for name, data in found.items()}
    assert {one["metadata"]["name"]: one["stringData"] for one in manifests.values()} == {
        "cert-manager-secret": {"api-token": 'a"b'},
        "cloudflare-dns-secret": {"api-token": 'a"b'},
        "unifi-dns-secret": {"api-key": "u"},
        "proxmox-csi-config": {
            "config.yaml": 'clusters:\n  - url: "https://pve.example.com:8006/api2/json"\n'
            "    insecure: false\n"
            '    token_id: "csi@pve!k"\n    token_secret: "s3"\n    region: "pve"\n'
        },
    }
    assert "apps/cert-manager/cert-manager/app/secret.sops.yaml" in found


def test_an_app_whose_fields_are_absent_gets_nothing() -> None:
    assert render_kubernetes_secrets(make_cluster(FOLDER, secrets={"proxmox_ccm_token_id": "x@pve!y"})) == {}


def test_any_text_is_the_same_after_yaml() -> None:
    text = "".join(map(chr, [*range(1, 0x100), 0x2028, 0x2029, 0xFEFF, 0x1F600])) + ": # - 'x'"
    assert yaml.safe_load(quote_yaml(text)) == text
    assert [yaml.safe_load(quote_yaml(value)) for value in (True, None, 12, "12")] == [True, None, 12, "12"]


def test_every_task_of_the_original_calls_stackyard_with_the_arguments_after_the_dashes() -> None:
    found = {name: yaml.safe_load(data) for name, data in render_taskfiles().items()}
    assert found["Taskfile.yaml"]["includes"] == {"infra": ".taskfiles/infrastructure"}
    tasks = found[".taskfiles/infrastructure/Taskfile.yaml"]["tasks"]
    assert list(tasks) == TASKS.split()
    for verb, task in tasks.items():
        assert task["cmd"].startswith(f"stackyard infra {verb} ")
        assert task["cmd"].endswith(" {{.CLI_ARGS}}")
    assert tasks["force-unlock"]["requires"] == {"vars": ["LOCK_ID"]}
