"""A kubeconfig whose context has another name."""

from __future__ import annotations

import pytest

from pvelab.kubernetes.authority import Authority
from stackyard.clients.kubernetes import parse_kubeconfig
from stackyard.clients.kubernetes.failures import KubeconfigError
from stackyard.clients.kubernetes.kubeconfig import rename_context


def test_a_renamed_context_leads_to_the_same_cluster_as_the_same_user() -> None:
    text = Authority.make().make_kubeconfig("https://192.0.2.10:6443", name="home")
    before, after = parse_kubeconfig(text), parse_kubeconfig(rename_context(text, "home"))
    assert (before.name, after.name) == ("admin@home", "home")
    assert (after.server, after.certificate_pem, after.key_pem) == (
        before.server,
        before.certificate_pem,
        before.key_pem,
    )


def test_a_kubeconfig_without_a_current_context_is_refused() -> None:
    with pytest.raises(KubeconfigError, match="current-context"):
        rename_context("clusters: []\n", "home")
