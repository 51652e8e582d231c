"""One API for all tests of a session: starting a real one takes seconds."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from tests.support.kubernetes import KINDS, run_kubernetes

from pvelab.kubernetes import RunningKubernetes

_NUMBERS = itertools.count(1)


@pytest.fixture(
    scope="session",
    params=[
        "double",
        pytest.param("real", marks=[pytest.mark.judges("kube-apiserver"), pytest.mark.judges("etcd")]),
    ],
)
def kube(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningKubernetes]:
    """An API that all tests share; each has a namespace of its own."""
    assert request.param in KINDS
    with run_kubernetes(request.param, tmp_path_factory.mktemp("kube")) as running:
        yield running


@pytest.fixture
def namespace() -> str:
    """The name of a namespace that no other test has."""
    return f"test-{next(_NUMBERS)}"
