"""Templates of users: they replace ours, use the names of the original, and can do no harm."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.resolved_clusters import make_cluster

from stackyard.render.cluster import TemplateFile, render_infrastructure, render_secrets
from stackyard.render.cluster.sandbox import TemplateError

CLUSTER = make_cluster(Path("/srv/cluster"))


def render(text: str, name: str = "tofu/extra.tf.j2") -> str:
    template = TemplateFile(path=f"templates/config/infrastructure/{name}", text=text)
    found = render_infrastructure(CLUSTER, overrides={name: template})
    return found.get(name.removesuffix(".j2"), b"").decode()


def test_a_template_replaces_ours_and_others_are_added() -> None:
    assert render("locals {}\n", "tofu/main.tf.j2") == "locals {}\n"
    assert render("locals {}\n", "tofu/main.tf") == "locals {}\n"
    assert render("# extra\n") == "# extra\n"
    assert render("# #{ not rendered }#\n", "tofu/plain.tf") == "# #{ not rendered }#\n"


def test_the_names_and_marks_of_the_original_work() -> None:
    text = (
        "#| a comment #|\n"
        "#% if infrastructure_enabled %#\n"
        '"#{ proxmox_api_url }#" #{ proxmox_vm_advanced.numa | lower }# #{ proxmox_vm_defaults.cores }#\n'
        "#% for node in nodes %#\n"
        "#{ node.name }# #{ node.vm_cores | default(1) }# #% if node.mtu is defined %#mtu#% endif %#.\n"
        "#% endfor %#\n"
        "#% endif %#\n"
        "tag #{ node_vlan_tag | default('none') }# tfstate.#{ cloudflare_domain }#\n"
    )
    assert render(text) == (
        '"https://pve.example.com:8006/api2/json" true 4\n'
        "k8s-1 4 .\nk8s-2 4 .\nk8s-3 4 .\n"
        "tag none tfstate.example.com\n"
    )


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("fine\n#{ proxmox_nod }#\n", 2, "'proxmox_nod' is undefined"),
        ("fine\n\n#% if x %#\n", 3, "Unexpected end of template"),
        ("#{ ''.__class__.__mro__ }#", 1, "not allowed"),
        ("fine\n#{ nodes.append(1) }#", 2, "not allowed"),
        ("#{ 'x' * 10000000000 }#", 1, "not allowed"),
        ("#{ 9 ** 9 ** 9 }#", 1, "not allowed"),
        ("#{ 1 / 0 }#", 1, "ZeroDivisionError"),
        ("#% include '/etc/passwd' %#", 1, "no template"),
        ("#{ tfstate_password }#", 1, "'tfstate_password' is undefined"),
        ("#{ nodes[0].nothing | hcl }#", 1, "no attribute 'nothing'"),
    ],
)
def test_a_mistake_is_reported_with_its_file_and_line(text: str, line: int, said: str) -> None:
    with pytest.raises(TemplateError) as caught:
        render(text)
    assert said in caught.value.detail
    assert caught.value.where is not None
    assert caught.value.where.path == "templates/config/infrastructure/tofu/extra.tf.j2"
    assert caught.value.where.line == line


def test_only_templates_of_encrypted_files_see_secrets() -> None:
    template = TemplateFile(path="own", text='password: "#{ tfstate_username }#"\n')
    found = render_secrets(CLUSTER, overrides={"own.sops.yaml.j2": template})
    assert found["own.sops.yaml"] == b'password: "terraform"\n'
    assert "own.sops.yaml" not in render_infrastructure(CLUSTER, overrides={"own.sops.yaml.j2": template})
