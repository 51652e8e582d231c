"""A network plugin in one object, for clusters of the lab."""

from __future__ import annotations

__all__ = ["NETWORK_FILES"]

_DAEMON_SET = """
    apiVersion: apps/v1
    kind: DaemonSet
    metadata: {name: network, namespace: kube-system}
    spec:
      selector: {matchLabels: {app: network}}
      template:
        metadata: {labels: {app: network}}
        spec:
          hostNetwork: true
          tolerations: [{operator: Exists}]
          containers:
            - name: agent
              image: registry.example.com/network:1
              volumeMounts: [{name: bin, mountPath: /host/opt/cni/bin}]
          volumes: [{name: bin, hostPath: {path: /opt/cni/bin}}]
"""
NETWORK_FILES = {
    "network.yaml": _DAEMON_SET,
    "bootstrap.yaml": "network: {manifests: network.yaml}\n",
}
