"""The section `storage` of bootstrap.yaml, and the steps that follow from it."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from tests.support.clusters import write_cluster

from stackyard.base.errors import InvalidInputError
from stackyard.bootstrap.storage import plan_storage_steps
from stackyard.bootstrap.storage.dataset import DatasetStep
from stackyard.bootstrap.storage.plan import StorageKeyError
from stackyard.sources.cluster.bootstrap_file import load_bootstrap
from stackyard.sources.cluster.load import load_cluster

STORAGE = {
    "truenas": "https://nas.lan",
    "fingerprint": ":".join(["ab"] * 32),
    "datasets": [{"name": "tank/k8s/volumes", "quota": "500G"}, {"name": "tank/k8s", "compression": "ZSTD"}],
}


def write(folder: Path, **changes: object) -> None:
    (folder / "bootstrap.yaml").write_text(yaml.safe_dump({"storage": {**STORAGE, **changes}}))


def test_a_parent_comes_before_its_children_whatever_the_order_in_the_file(tmp_path: Path) -> None:
    write(tmp_path)
    write_cluster(tmp_path, truenas_api_key="1-secret")
    fields = load_bootstrap(tmp_path)
    (planned,) = plan_storage_steps(load_cluster(tmp_path), fields.storage)
    assert isinstance(planned.step, DatasetStep)
    assert [one.name for one in planned.step.datasets] == ["tank/k8s", "tank/k8s/volumes"]
    assert planned.step.datasets[1].properties.quota == 500 * 2**30
    assert "1-secret" not in repr(planned)


def test_datasets_without_a_key_are_an_error_that_says_where_it_goes(tmp_path: Path) -> None:
    write(tmp_path)
    write_cluster(tmp_path)
    fields = load_bootstrap(tmp_path)
    with pytest.raises(StorageKeyError, match="truenas_api_key") as caught:
        plan_storage_steps(load_cluster(tmp_path), fields.storage)
    assert "cluster.sops.yaml" in caught.value.remedy


def test_a_cluster_without_the_section_has_no_step(tmp_path: Path) -> None:
    write_cluster(tmp_path)
    assert plan_storage_steps(load_cluster(tmp_path), None) == ()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"truenas": "http://nas.lan"}, "storage.truenas"),
        ({"fingerprint": "ab:cd"}, "64 hexadecimal digits"),
        ({"authority": "nas.pem"}, "nas.pem"),
        ({"datasets": []}, "storage.datasets"),
        ({"datasets": [{"name": "tank"}]}, "name"),
        ({"datasets": [{"name": "tank/../etc"}]}, "name"),
        ({"datasets": [{"name": "tank/a", "quota": "500"}]}, "500G or 2T"),
        ({"datasets": [{"name": "tank/a", "sync": "sometimes"}]}, "sync"),
        ({"datasets": [{"name": "tank/a"}, {"name": "tank/a"}]}, "more than once"),
        ({"datasets": [{"name": "tank/a", "encryption": True}]}, "encryption"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(
    tmp_path: Path, changes: dict[str, object], said: str
) -> None:
    write(tmp_path, **changes)
    with pytest.raises(InvalidInputError) as caught:
        load_bootstrap(tmp_path)
    assert said in str(caught.value) + repr(caught.value.__dict__)
