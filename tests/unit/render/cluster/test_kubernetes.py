"""Secrets for Kubernetes, and the tasks of go-task."""

from __future__ import annotations

import re
from pathlib import Path

import click
import yaml
from tests.support.resolved_clusters import make_cluster

from stackyard.cli.root import root
from stackyard.render.cluster import render_infrastructure, render_kubernetes_secrets
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
    assert found["Taskfile.yaml"]["includes"] == {
        "bootstrap": ".taskfiles/bootstrap",
        "infra": ".taskfiles/infrastructure",
    }
    tasks = found[".taskfiles/infrastructure/Taskfile.yaml"]["tasks"]
    assert list(tasks) == TASKS.split()
    for verb, task in tasks.items():
        assert task["cmd"].startswith(f"stackyard infra {verb} ")
        assert task["cmd"].endswith(" {{.CLI_ARGS}}")
    assert tasks["force-unlock"]["requires"] == {"vars": ["LOCK_ID"]}
    booting = found[".taskfiles/bootstrap/Taskfile.yaml"]["tasks"]
    assert {name: task["cmd"] for name, task in booting.items()} == dict.fromkeys(
        ("talos", "apps"), "stackyard cluster up {{.CLI_ARGS}}"
    )


def test_the_next_steps_name_commands_that_there_are() -> None:
    outputs = render_infrastructure(make_cluster(FOLDER))["tofu/outputs.tf"].decode()
    steps = outputs.partition('output "next_steps"')[2]
    commands = re.findall(r": (stackyard [a-z -]+|task [a-z:-]+)$", steps, re.MULTILINE)
    assert commands == ["stackyard infra verify-nodes", "stackyard cluster up"]
    for command in commands:
        found: click.Command | None = root
        for word in command.split()[1:]:
            assert isinstance(found, click.Group)
            found = found.get_command(click.Context(found), word)
        assert found is not None, command
