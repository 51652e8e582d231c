"""The steps of a cold boot that speak to Talos: configurations, etcd, and the kubeconfig.

`ConfiguredStep` gives a node its configuration and waits until it answers to the certificate of its cluster,
`EtcdStep` lets the first control plane node form etcd exactly once, and `KubernetesStep` waits for the
Kubernetes API. Secrets are in memory alone.
"""

from __future__ import annotations
