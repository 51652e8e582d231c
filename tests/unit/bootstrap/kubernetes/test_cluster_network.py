from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.programs import write_program

from stackyard.base.process import ProcessFailedError
from stackyard.bootstrap.kubernetes import HelmChart, make_cilium, render_chart
from stackyard.bootstrap.kubernetes.network import NoNetworkError

CHART = HelmChart(release="net", chart="./net", namespace="kube-system", values={"secret": "hunter22"})


def test_cilium_replaces_kube_proxy_through_the_local_balancer_of_talos() -> None:
    chart = make_cilium(
        version="1.18.4", values={"cgroup": {"hostRoot": "/other"}, "hubble": {"enabled": True}}
    )
    assert chart.values["kubeProxyReplacement"] is True
    assert (chart.values["k8sServiceHost"], chart.values["k8sServicePort"]) == ("localhost", 7445)
    assert chart.values["cgroup"] == {"autoMount": {"enabled": False}, "hostRoot": "/other"}
    assert chart.values["hubble"] == {"enabled": True}


async def test_a_chart_is_rendered_with_values_that_are_in_no_argument(tmp_path: Path) -> None:
    helm = write_program(
        tmp_path / "helm",
        f'echo "$@" > {tmp_path}/argv; cat > {tmp_path}/values\n'
        "printf 'apiVersion: v1\\nkind: ServiceAccount\\nmetadata: {name: agent}\\n---\\n"
        "apiVersion: rbac.authorization.k8s.io/v1\\nkind: ClusterRole\\nmetadata: {name: agent}\\n'",
    )
    account, role = await render_chart(helm, CHART)
    assert account["metadata"] == {"name": "agent", "namespace": "kube-system"}
    assert role["metadata"] == {"name": "agent"}
    assert "hunter22" not in (tmp_path / "argv").read_text() + repr(CHART)
    assert "hunter22" in (tmp_path / "values").read_text()


async def test_without_helm_the_user_can_give_a_file() -> None:
    with pytest.raises(NoNetworkError) as caught:
        await render_chart(None, CHART)
    assert "as a file" in caught.value.remedy


async def test_what_helm_says_of_a_broken_chart_is_in_the_error(tmp_path: Path) -> None:
    helm = write_program(tmp_path / "helm", "cat > /dev/null; echo 'Error: chart not found' >&2; exit 1")
    with pytest.raises(ProcessFailedError, match="chart not found"):
        await render_chart(helm, CHART)
