from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.programs import write_program

from stackyard.base.process import ProcessFailedError
from stackyard.bootstrap.kubernetes import (
    CILIUM_VERSION,
    HelmChart,
    HelmMissingError,
    make_cilium,
    render_chart,
)
from stackyard.sources.cluster import bootstrap_page

CHART = HelmChart(release="net", chart="./net", namespace="kube-system", values={"secret": "hunter22"})


def test_cilium_replaces_kube_proxy_through_the_local_balancer_of_talos() -> None:
    chart = make_cilium(
        version="1.18.4", values={"cgroup": {"hostRoot": "/other"}, "hubble": {"enabled": True}}
    )
    assert chart.values["kubeProxyReplacement"] is True
    assert (chart.values["k8sServiceHost"], chart.values["k8sServicePort"]) == ("localhost", 7445)
    assert chart.values["cgroup"] == {"autoMount": {"enabled": False}, "hostRoot": "/other"}
    assert chart.values["hubble"] == {"enabled": True}


def test_a_cluster_without_a_word_on_its_network_gets_a_fixed_version_that_renders_the_same_again() -> None:
    chart = make_cilium()
    assert chart.version == CILIUM_VERSION
    assert f"{CILIUM_VERSION} when absent" in bootstrap_page.render()
    assert chart.values["hubble"] == {"enabled": False}, "its certificates are new in each rendering"


async def test_what_helm_says_has_no_secret_value(tmp_path: Path) -> None:
    helm = write_program(tmp_path / "helm", "cat >&2; exit 1")
    chart = HelmChart(
        release="a", chart="./a", namespace="a", values={"key": "hunter22"}, secrets=frozenset({"hunter22"})
    )
    with pytest.raises(ProcessFailedError) as caught:
        await render_chart(helm, chart)
    assert "hunter22" not in str(caught.value)


async def test_a_chart_is_rendered_with_values_that_are_in_no_argument(tmp_path: Path) -> None:
    helm = write_program(
        tmp_path / "helm",
        f'echo "$@" > {tmp_path}/argv; cat > {tmp_path}/values\n'
        "printf 'apiVersion: v1\\nkind: ServiceAccount\\nmetadata: {name: agent}\\n---\\n"
        "apiVersion: rbac.authorization.k8s.io/v1\\nkind: ClusterRole\\nmetadata: {name: agent}\\n'",
    )
    account, role = await render_chart(helm, CHART, kubernetes_version="1.35.0")
    assert (account["kind"], role["kind"]) == ("ServiceAccount", "ClusterRole")
    assert account["metadata"]["annotations"] == {
        "meta.helm.sh/release-name": "net",
        "meta.helm.sh/release-namespace": "kube-system",
    }, "a release of that name can take it over"
    said = (tmp_path / "argv").read_text()
    assert "hunter22" not in said + repr(CHART)
    assert "--kube-version 1.35.0" in said
    assert "--no-hooks" in said
    assert "hunter22" in (tmp_path / "values").read_text()


async def test_without_helm_the_user_can_give_a_file() -> None:
    with pytest.raises(HelmMissingError) as caught:
        await render_chart(None, CHART)
    assert "as a file" in caught.value.remedy


async def test_what_helm_says_of_a_broken_chart_is_in_the_error(tmp_path: Path) -> None:
    helm = write_program(tmp_path / "helm", "cat > /dev/null; echo 'Error: chart not found' >&2; exit 1")
    with pytest.raises(ProcessFailedError, match="chart not found"):
        await render_chart(helm, CHART)
