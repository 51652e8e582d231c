from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.support.programs import write_program

from stackyard.bootstrap.kubernetes import (
    FluxMissingError,
    FluxSettingsError,
    GitAccess,
    GitSource,
    KustomizationLayer,
    export_flux,
    list_flux_objects,
    make_flux_instance,
    make_git_repository,
    make_git_secret,
    make_kustomizations,
    make_layers,
)
from stackyard.clients.kubernetes import refer_to

SSH = GitAccess(
    private_key="-----BEGIN OPENSSH PRIVATE KEY-----\nkey\n", known_hosts="git.home ssh-ed25519 AAAA"
)
SOURCE = GitSource(url="git@git.home:infra/cluster.git", access=SSH)


def test_an_address_as_git_writes_it_becomes_one_that_flux_reads() -> None:
    assert SOURCE.address == "ssh://git@git.home/infra/cluster.git"
    for url in ("ssh://git@git.home:2222/a.git", "https://git.home/a.git"):
        assert GitSource(url=url).address == url


def test_a_deploy_key_becomes_the_secret_that_flux_expects() -> None:
    secret = make_git_secret(SOURCE)
    assert secret is not None
    assert set(secret.values) == {"identity", "known_hosts"}
    assert "OPENSSH" not in repr(secret) + repr(SOURCE)
    made = make_git_repository(SOURCE)
    assert made["spec"]["secretRef"] == {"name": "flux-system"}
    assert made["spec"]["ref"] == {"branch": "main"}


def test_a_token_and_an_authority_open_any_forge_over_https() -> None:
    access = GitAccess(username="oauth2", token="glpat-value", authority_pem="PEM")
    secret = make_git_secret(GitSource(url="https://git.home/a.git", access=access))
    assert secret is not None
    assert secret.values == {"username": "oauth2", "password": "glpat-value", "ca.crt": "PEM"}


def test_a_public_repository_needs_no_secret() -> None:
    source = GitSource(url="https://git.home/a.git", tag="v1.0.0")
    assert make_git_secret(source) is None
    made = make_git_repository(source)["spec"]
    assert "secretRef" not in made
    assert made["ref"] == {"tag": "v1.0.0"}


def test_everything_that_cannot_work_is_said_at_once() -> None:
    source = GitSource(url="git@git.home:a.git", interval="often", tag="v1", commit="abc")
    with pytest.raises(FluxSettingsError) as caught:
        make_git_repository(source)
    for said in ("deploy key", "known_hosts", "'often'", "a tag and a commit"):
        assert said in caught.value.detail


def test_an_authority_alone_is_a_secret_without_a_token() -> None:
    secret = make_git_secret(GitSource(url="https://git.home/a.git", access=GitAccess(authority_pem="PEM")))
    assert secret is not None
    assert secret.values == {"ca.crt": "PEM"}


@pytest.mark.parametrize(
    ("named", "reference"),
    [
        ({}, {"branch": "main"}),
        ({"branch": "next"}, {"branch": "next"}),
        ({"commit": "a" * 40}, {"commit": "a" * 40}),
        ({"branch": "next", "commit": "a" * 40}, {"branch": "next", "commit": "a" * 40}),
    ],
)
def test_what_is_applied_is_a_branch_a_tag_or_a_commit(
    named: dict[str, Any], reference: dict[str, str]
) -> None:
    assert make_git_repository(GitSource(url="https://git.home/a.git", **named))["spec"]["ref"] == reference


def test_a_password_in_the_address_is_refused_and_not_repeated() -> None:
    with pytest.raises(FluxSettingsError) as caught:
        GitSource(url="https://me:hunter22@git.home/a.git").check()
    assert "hunter22" not in caught.value.detail


def test_a_token_is_never_sent_in_clear() -> None:
    source = GitSource(url="http://git.home/a.git", access=GitAccess(token="glpat-value"))
    with pytest.raises(FluxSettingsError, match="must not be sent over http"):
        make_git_repository(source)


def test_the_layers_follow_each_other_prune_wait_and_decrypt() -> None:
    made = make_kustomizations(SOURCE, make_layers("clusters/prod"))
    assert [(row["metadata"]["name"], row["spec"]["path"]) for row in made] == [
        ("infrastructure-controllers", "./clusters/prod/infrastructure/controllers"),
        ("infrastructure-configs", "./clusters/prod/infrastructure/configs"),
        ("apps", "./clusters/prod/apps"),
    ]
    assert [row["spec"].get("dependsOn") for row in made] == [
        None,
        [{"name": "infrastructure-controllers"}],
        [{"name": "infrastructure-configs"}],
    ]
    for row in made:
        assert row["spec"]["prune"]
        assert row["spec"]["wait"]
        assert row["spec"]["interval"] == "10m0s"
        assert row["spec"]["decryption"] == {"provider": "sops", "secretRef": {"name": "sops-age"}}
    order = list_flux_objects((*made, make_git_repository(SOURCE)))
    assert [reference.kind for reference in order] == ["GitRepository", *["Kustomization"] * 3]


@pytest.mark.parametrize(
    ("layers", "said"),
    [
        ((), "there is none"),
        ((KustomizationLayer(name="a", path="./a", after=("b",)),), "waits for b"),
        ((KustomizationLayer(name="a", path="./a"),) * 2, "twice"),
        ((KustomizationLayer(name="a", path="../a"),), "leads out"),
    ],
)
def test_layers_that_cannot_work_are_refused(layers: tuple[KustomizationLayer, ...], said: str) -> None:
    with pytest.raises(FluxSettingsError, match=said):
        make_kustomizations(SOURCE, layers)


async def test_the_manifests_of_flux_are_what_its_program_exports(tmp_path: Path) -> None:
    flux = write_program(
        tmp_path / "flux",
        'test "$1 $2 $3" = "install --export --components=source-controller" || exit 1\n'
        "printf 'apiVersion: v1\\nkind: Namespace\\nmetadata: {name: flux-system}\\n---\\n'",
    )
    (found,) = await export_flux(flux, components=("source-controller",))
    assert refer_to(found).name == "flux-system"


async def test_without_its_program_flux_is_not_left_out_silently() -> None:
    with pytest.raises(FluxMissingError, match="not installed"):
        await export_flux(None)


def test_the_operator_installs_flux_from_one_object() -> None:
    made = make_flux_instance(version="2.7.x")
    assert refer_to(made).kind == "FluxInstance"
    assert made["spec"]["distribution"]["version"] == "2.7.x"
