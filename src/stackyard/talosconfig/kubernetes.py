"""Kubernetes in the machine configuration: sections up to Talos 1.13, documents from 1.14 on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.talosconfig.settings import make_document

if TYPE_CHECKING:
    from stackyard.talosconfig.certificates import CertificateAndKey
    from stackyard.talosconfig.settings import MachineInput

__all__ = ["KUBEPRISM_PORT", "list_kubernetes_documents", "make_cluster_section", "make_kubelet"]

KUBEPRISM_PORT = 7445
_DNS_DOMAIN = "cluster.local"
_CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
_POD_SECURITY: dict[str, Any] = {
    "apiVersion": "pod-security.admission.config.k8s.io/v1alpha1",
    "kind": "PodSecurityConfiguration",
    "defaults": {
        "enforce": "baseline",
        "enforce-version": "latest",
        "audit": "restricted",
        "audit-version": "latest",
        "warn": "restricted",
        "warn-version": "latest",
    },
    "exemptions": {"usernames": [], "runtimeClasses": [], "namespaces": ["kube-system"]},
}
_AUDIT: dict[str, Any] = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata"}]}
_ANONYMOUS: dict[str, Any] = {
    "anonymous": {
        "enabled": True,
        "conditions": [{"path": "/livez"}, {"path": "/readyz"}, {"path": "/healthz"}],
    },
    "jwt": [],
}


def make_kubelet(given: MachineInput) -> dict[str, Any]:
    """Return `machine.kubelet`."""
    return {
        "image": given.image("kubelet"),
        "defaultRuntimeSeccompProfileEnabled": True,
        "disableManifestsDirectory": True,
        "nodeIP": {"validSubnets": [str(given.cluster.network.node_cidr)]},
    }


def make_cluster_section(given: MachineInput) -> dict[str, Any]:
    """Return `cluster` up to Talos 1.13; that of a worker has no secret of control planes."""
    bundle, network = given.bundle, given.cluster.network
    section: dict[str, Any] = {
        "id": bundle.cluster_id,
        "secret": bundle.cluster_secret,
        "controlPlane": {"endpoint": given.endpoint},
        "clusterName": given.cluster.name,
        "network": {
            "cni": {"name": given.settings.cni},
            "dnsDomain": _DNS_DOMAIN,
            "podSubnets": [str(network.pod_cidr)],
            "serviceSubnets": [str(network.svc_cidr)],
        },
        "token": bundle.bootstrap_token,
    }
    discovery = {"enabled": True, "registries": {"kubernetes": {"disabled": True}, "service": {}}}
    if not given.node.is_controller:
        return section | {"ca": {"crt": bundle.kubernetes.crt_base64, "key": ""}, "discovery": discovery}
    return section | _make_control_plane(given) | {"discovery": discovery, "etcd": make_etcd(given)}


def _make_control_plane(given: MachineInput) -> dict[str, Any]:
    bundle = given.bundle
    encryption = {
        "secretboxEncryptionSecret": bundle.secretbox_secret,
        "aescbcEncryptionSecret": bundle.aescbc_secret,
    }
    policy = {} if given.contract.has_hidden_features else {"disablePodSecurityPolicy": True}
    return {
        **{key: value for key, value in encryption.items() if value},
        "ca": _pair(bundle.kubernetes),
        "aggregatorCA": _pair(bundle.aggregator),
        "serviceAccount": {"key": bundle.service_account_base64},
        "apiServer": {
            "image": given.image("kube-apiserver"),
            "certSANs": given.names,
            **policy,
            "admissionControl": [{"name": "PodSecurity", "configuration": _POD_SECURITY}],
            "auditPolicy": _AUDIT,
        },
        "controllerManager": {"image": given.image("kube-controller-manager")},
        "proxy": {
            **({} if given.settings.has_kube_proxy else {"disabled": True}),
            "image": given.image("kube-proxy"),
        },
        "scheduler": {"image": given.image("kube-scheduler")},
        "allowSchedulingOnControlPlanes": given.is_scheduling_allowed,
    }


def make_etcd(given: MachineInput) -> dict[str, Any]:
    """Return `cluster.etcd` of a control plane."""
    return {"ca": _pair(given.bundle.etcd), "advertisedSubnets": [str(given.cluster.network.node_cidr)]}


def list_kubernetes_documents(given: MachineInput) -> list[dict[str, Any]]:
    """Return the documents of Kubernetes; those of a worker have no secret of control planes."""
    network = given.cluster.network
    taints = {} if given.is_scheduling_allowed else {"taints": {_CONTROL_PLANE: "NoSchedule"}}
    role = {_CONTROL_PLANE: ""} if given.node.is_controller else {}
    labels = {**role, **given.labels}
    documents = [
        make_document("KubeClusterConfig", clusterName=given.cluster.name, endpoint=given.endpoint),
        make_document(
            "KubeNodeConfig",
            nodeIP={"validSubnets": [str(network.node_cidr)]},
            **({"labels": labels} if labels else {}),
            **(taints if given.node.is_controller else {}),
        ),
        make_document(
            "KubeletConfig", image=given.image("kubelet"), defaultRuntimeSeccompProfileEnabled=True
        ),
        make_document(
            "KubeNetworkConfig",
            dnsDomain=_DNS_DOMAIN,
            podSubnets=[str(network.pod_cidr)],
            serviceSubnets=[str(network.svc_cidr)],
        ),
        _make_api_authority(given),
        make_document("KubePrismConfig", port=KUBEPRISM_PORT),
    ]
    return documents + (_list_control_plane_documents(given) if given.node.is_controller else [])


def _make_api_authority(given: MachineInput) -> dict[str, Any]:
    pair = given.bundle.kubernetes
    if given.node.is_controller:
        return make_document("KubeAPIServerCAConfig", issuingCA={"cert": pair.crt, "key": pair.key})
    return make_document("KubeAPIServerCAConfig", acceptedCAs=[pair.crt])


def _list_control_plane_documents(given: MachineInput) -> list[dict[str, Any]]:
    aggregator, settings = given.bundle.aggregator, given.settings
    issuer = {"privateKey": given.bundle.service_account_key, "issuerURL": given.endpoint}
    proxy = {} if settings.has_kube_proxy else {"enabled": False}
    documents = [
        make_document("KubeAggregatorCAConfig", issuingCA={"cert": aggregator.crt, "key": aggregator.key}),
        make_document("KubeAdmissionControlConfig", name="PodSecurity", configuration=_POD_SECURITY),
        make_document("KubeAuditPolicyConfig", configuration=_AUDIT),
        make_document("KubeAuthenticationConfig", configuration=_ANONYMOUS),
        make_document("KubeAuthorizerConfig", name="node", type="Node"),
        make_document("KubeAuthorizerConfig", name="rbac", type="RBAC"),
        make_document("KubeEtcdEncryptionConfig", config=_make_etcd_encryption(given)),
        make_document("KubeServiceAccountConfig", issuer=issuer),
        make_document("KubeAPIServerConfig", image=given.image("kube-apiserver"), certExtraSANs=given.names),
        make_document("KubeControllerManagerConfig", image=given.image("kube-controller-manager")),
        make_document("KubeSchedulerConfig", image=given.image("kube-scheduler")),
        make_document("KubeProxyConfig", **proxy, image=given.image("kube-proxy")),
    ]
    if settings.cni == "flannel":
        documents.append(make_document("KubeFlannelCNIConfig", backendType="vxlan", backendPort=4789))
    return [*documents, make_document("KubeCoreDNSConfig", enabled=True)]


def _make_etcd_encryption(given: MachineInput) -> dict[str, Any]:
    """Return the keys of secrets in etcd, with the names of older releases: its content stays readable."""
    keys = (
        ("secretbox", "key2", given.bundle.secretbox_secret),
        ("aescbc", "key1", given.bundle.aescbc_secret),
    )
    providers = [
        {provider: {"keys": [{"name": name, "secret": secret}]}} for provider, name, secret in keys if secret
    ]
    return {"resources": [{"resources": ["secrets"], "providers": [*providers, {"identity": {}}]}]}


def _pair(pair: CertificateAndKey) -> dict[str, str]:
    return {"crt": pair.crt_base64, "key": pair.key_base64}
