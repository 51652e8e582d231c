"""`bootstrap.yaml`: what it may say, and that everything wrong in it is said at once without a value."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.clusters import write_cluster

from stackyard.base.errors import InvalidInputError
from stackyard.sources.cluster.bootstrap_file import BootstrapFields, NetworkFields, load_bootstrap
from stackyard.sources.cluster.validate import validate_clusters

TOKEN = "ghp_" + "a1B2c3D4e5F6a1B2c3D4e5F6a1B2c3D4e5F6"


def load(folder: Path, text: str) -> BootstrapFields:
    (folder / "bootstrap.yaml").write_text(text)
    return load_bootstrap(folder)


def codes(folder: Path, text: str) -> list[str]:
    with pytest.raises(InvalidInputError) as caught:
        load(folder, text)
    return [one.kind.code for one in caught.value.diagnostics]


def test_a_cluster_without_the_file_says_nothing_and_gets_the_default_network(tmp_path: Path) -> None:
    assert load_bootstrap(tmp_path) == BootstrapFields()


def test_no_network_has_to_be_said(tmp_path: Path) -> None:
    assert load(tmp_path, "network: none\n").network == "none"
    assert load(tmp_path, "network: {cilium_version: 1.18.4}\n").network == NetworkFields(
        cilium_version="1.18.4"
    )
    assert codes(tmp_path, "network: flannel\n")
    assert codes(tmp_path, "# nothing\n") == ["E-YAML-EMPTY"]


@pytest.mark.parametrize(
    "text",
    [
        "network: {cilium_version: 1.18.4, manifests: a.yaml}",
        "flux: {manifests: a.yaml, operator: {version: 0.33.0}}",
        "flux: {operator: {}}",
        "flux: {operator: {version: 0.33.0, manifests: a.yaml}}",
        "flux: {manifests: a.yaml, version: v2.7.3}",
        "charts: [{name: a, chart: ./a, version: 1.0.0}]",
        "charts: [{name: a, chart: ./a}, {name: a, chart: ./b}]",
        "charts: [{name: a, chart: ./a, after: [b]}, {name: b, chart: ./b}]",
    ],
)
def test_fields_that_contradict_each_other_are_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("")
    assert codes(tmp_path, text) == ["E-CLUSTER-BOOTSTRAP-BOTH"]


def test_a_chart_has_a_version_so_that_a_second_run_applies_the_same(tmp_path: Path) -> None:
    assert codes(tmp_path, "charts: [{name: a, chart: oci://r.example.com/a}]") == ["E-CLUSTER-MISSING"]
    assert codes(tmp_path, "charts: [{version: 1.0.0}]") == ["E-CLUSTER-MISSING"] * 2
    fields = load(tmp_path, "charts: [{name: a, chart: oci://r.example.com/a, version: 1.0.0}]")
    assert fields.charts[0].namespace == "default"


def test_a_secret_in_the_file_is_refused_and_not_repeated(tmp_path: Path) -> None:
    for text in (
        f"flux: {{token: {TOKEN}}}",
        "flux: {url: 'https://me:hunter2222@forge.home.arpa/a.git'}",
        f"network: {{cilium_values: {{a: {TOKEN}}}}}",
    ):
        with pytest.raises(InvalidInputError) as caught:
            load(tmp_path, text)
        said = str(caught.value) + "".join(one.detail for one in caught.value.diagnostics)
        assert "E-CLUSTER-BOOTSTRAP-SECRET" in {one.kind.code for one in caught.value.diagnostics}
        assert TOKEN not in said
        assert "hunter2222" not in said


def test_a_token_is_named_and_never_given(tmp_path: Path) -> None:
    assert load(tmp_path, "flux: {token: git_token}").flux is not None
    for text in ("flux: {token: gti_token}", "flux: {token: plainpassword}"):
        with pytest.raises(InvalidInputError) as caught:
            load(tmp_path, text)
        (found,) = caught.value.diagnostics
        assert found.kind.code == "E-CLUSTER-BOOTSTRAP-TOKEN"
        assert "plainpassword" not in found.detail
        assert found.where is not None
        assert found.where.line == 1


def test_every_file_that_is_named_has_to_be_there(tmp_path: Path) -> None:
    text = """
flux: {deploy_key: a.key, known_hosts: hosts, authority: ca.pem, operator: {manifests: o.yaml}}
charts: [{name: a, chart: ./a, values_file: values.sops.yaml}]
secrets: [s.sops.yaml]
"""
    assert codes(tmp_path, text) == ["E-CLUSTER-BOOTSTRAP-FILE"] * 6


def test_validate_finds_what_is_wrong_with_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_cluster(tmp_path)
    (tmp_path / "bootstrap.yaml").write_text("netwrok: none\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInputError) as caught:
        validate_clusters()
    assert "E-CLUSTER-KEY" in {one.kind.code for one in caught.value.diagnostics}
