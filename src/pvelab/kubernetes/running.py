"""Serving a Kubernetes API for the length of a block: the double, or kube-apiserver with etcd."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pvelab.kubernetes.api import KubernetesApi
from pvelab.kubernetes.authority import Authority
from pvelab.kubernetes.programs import Programs, run_programs, write_server_certificate
from stackyard.base.serving import Tls, serve

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

__all__ = ["RunningKubernetes", "serve_double", "serve_programs"]

_HERE = "127.0.0.1"
# The last is the first address of the range of services, as every kube-apiserver certificate has it.
_NAMES = (_HERE, "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "10.96.0.1")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningKubernetes:
    """An API that answers.

    Attributes:
        url: Its address.
        authority: Signs its certificates.
        api: The double itself, None for a real one.
        show_names: Shows a certificate with these further names from now on.
    """

    url: str
    authority: Authority
    api: KubernetesApi | None = field(default=None, repr=False)
    show_names: Callable[[tuple[str, ...]], None] = field(repr=False)

    def make_kubeconfig(self, user: str = "admin", groups: tuple[str, ...] = ("system:masters",)) -> str:
        """Return the kubeconfig of a user."""
        return self.authority.make_kubeconfig(self.url, user, groups)


@contextlib.asynccontextmanager
async def serve_double(
    *,
    api: KubernetesApi | None = None,
    authority: Authority | None = None,
    bind: str = _HERE,
    port: int = 0,
    names: tuple[str, ...] = (),
) -> AsyncIterator[RunningKubernetes]:
    """Serve the double.

    Args:
        api: What answers; one without objects if absent.
        authority: Signs its certificates; a new one if absent.
        bind: The address to listen on.
        port: The port, 0 for a free one.
        names: Further names and addresses that clients use.
    """
    signer = authority or Authority.make()
    served = api or KubernetesApi()

    def make_tls(more: tuple[str, ...]) -> Tls:
        shown = signer.issue_server((*dict.fromkeys((*_NAMES, bind, *more)),))
        return Tls(shown, client_authorities_pem=signer.certificate_pem)

    async with serve(served.handle, bind=bind, port=port, tls=make_tls(names)) as server:
        try:
            yield RunningKubernetes(
                url=server.url,
                authority=signer,
                api=served,
                show_names=lambda more: server.reload(make_tls(more)),
            )
        finally:
            served.cluster.store.close()


@contextlib.asynccontextmanager
async def serve_programs(
    programs: Programs, folder: Path, *, authority: Authority | None = None, names: tuple[str, ...] = ()
) -> AsyncIterator[RunningKubernetes]:
    """Start etcd and kube-apiserver on free ports of this machine, with their data in a folder.

    Args:
        programs: The programs.
        folder: A folder of ours; data that is there is used again.
        authority: Signs its certificates; a new one if absent.
        names: Further names and addresses that clients use.

    Raises:
        KubernetesStartError: One of them ends or does not get ready.
    """
    signer = authority or Authority.make()
    async with run_programs(programs, folder, signer, (*_NAMES, *names)) as url:
        yield RunningKubernetes(
            url=url,
            authority=signer,
            # kube-apiserver watches the files of its certificate.
            show_names=lambda more: write_server_certificate(folder, signer, (*_NAMES, *more)),
        )
