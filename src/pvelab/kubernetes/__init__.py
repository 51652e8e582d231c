"""The Kubernetes API behind a control plane of the lab: a double, or a real kube-apiserver with etcd.

`serve_double` serves a small API in this process: namespaces, secrets, definitions and their objects,
workloads as plain objects, server-side apply with field managers and conflicts, status, roles, and watches
that can be resumed. `serve_programs` starts kube-apiserver and etcd instead. Both give a `RunningKubernetes`,
and clients pass the same contract suite against either.

Neither has controllers. `Controllers`, a client of whichever API it is, does what they would do: nodes become
ready once a network plugin is applied, workloads roll out, and objects of Flux become ready once their source
was fetched and its objects applied.
"""

from __future__ import annotations

from pvelab.kubernetes.authority import Authority
from pvelab.kubernetes.running import RunningKubernetes, serve_double, serve_programs

__all__ = ["Authority", "RunningKubernetes", "serve_double", "serve_programs"]
