"""What a lab will say when it is ready, before it is started."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.runtime.options import certificate_of
from pvelab.runtime.stored_login import read_or_create_login
from pvelab.seeds.stock import TOKEN_NAME
from pvelab.truenas.login import make_api_key
from pvelab.world.access.directory import ROOT

if TYPE_CHECKING:
    from pvelab.runtime.options import Options

__all__ = ["expected_ready"]


def expected_ready(options: Options) -> dict[str, Any]:
    """Return the ready line of a lab that keeps its identity and has fixed ports; it is not started.

    Raises:
        ValueError: Its ports or its identity are not fixed.
        FileError: The folder of its identity cannot be used.
    """
    if options.identity is None or not options.port or not options.ssh_port:
        raise ValueError("what this lab will say is not known before it is started")
    login = read_or_create_login(options.identity)
    nodes = tuple(options.nodes or options.seed.nodes)
    services = (
        {"factory_url": f"http://{options.bind}:{options.factory_port}"} if options.factory_port else {}
    )
    if options.truenas_port:
        token = f"{ROOT}!{TOKEN_NAME}={options.seed.token or login.token}"
        services["truenas_url"] = f"https://{options.bind}:{options.truenas_port}"
        services["truenas_api_key"] = make_api_key(token)
    return {
        "url": f"https://{options.bind}:{options.port}",
        "api_token": f"{ROOT}!{TOKEN_NAME}={options.seed.token or login.token}",
        "username": ROOT,
        "password": options.password or options.seed.password or login.password,
        "ssh_port": options.ssh_port,
        "fingerprint": certificate_of(options).fingerprint,
        "ssh_ports": {node: options.ssh_port + number for number, node in enumerate(nodes)},
        "nodes": list(nodes),
        **services,
    }
