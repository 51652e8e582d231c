"""External metric servers: `/cluster/metrics/server`. The lab sends them nothing and takes them to answer.

Documents: `metric_servers/<id>`; `metric_tokens/<id>` has the `token`, which no call shows again and which a
node keeps in `/etc/pve/priv/metricserver/<id>.pw`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.server.params.texts import split_list
from pvelab.server.problems import PveError
from pvelab.server.routing import route
from pvelab.world.sections import Kind, SectionFile

if TYPE_CHECKING:
    from pvelab.server.call import Call

__all__ = ["create_server", "delete_server", "index_metrics", "list_servers", "read_server", "update_server"]

TOKENS = "metric_tokens"

_LOCK = "file-status_cfg"
_SERVER, _COMMON = frozenset(("server",)), frozenset(("disable", "mtu", "timeout"))
_KINDS = {
    kind.name: kind
    for kind in (
        Kind(name="graphite", required=_SERVER, optional=_COMMON | {"port", "proto", "path"}),
        Kind(
            name="influxdb",
            required=_SERVER | {"port"},
            optional=_COMMON
            | {
                *("organization", "bucket", "token", "influxdbproto", "max-body-size"),
                *("api-path-prefix", "verify-certificate"),
            },
        ),
        Kind(
            name="opentelemetry",
            required=_SERVER,
            optional=frozenset(
                (
                    *("port", "disable", "otel-protocol", "otel-path", "otel-timeout", "otel-headers"),
                    *("otel-verify-ssl", "otel-max-body-size", "otel-resource-attributes"),
                    "otel-compression",
                )
            ),
        ),
    )
}
_NOT_SETTINGS = frozenset(("id", "type", "digest", "delete", "token"))


@route("GET /cluster/metrics")
def index_metrics(_call: Call) -> Any:
    """List what there is of metrics."""
    return [{"name": "server"}]


@route("GET /cluster/metrics/server")
def list_servers(call: Call) -> Any:
    """List the servers."""
    return [
        {
            "id": ident,
            "disable": section.get("disable", 0),
            "type": section["type"],
            "server": section["server"],
            "port": section.get("port"),
        }
        for ident, section in sorted(_file(call).all().items())
    ]


@route("GET /cluster/metrics/server/{id}")
def read_server(call: Call) -> Any:
    """Read one server."""
    found = _file(call).get(call.params["id"])
    if found is None:
        raise PveError(f"status server entry '{call.params['id']}' does not exist")
    return dict(found)


@route("POST /cluster/metrics/server/{id}")
def create_server(call: Call) -> Any:
    """Add a server."""
    ident = call.params["id"]
    with call.world.cluster.lock_file(_LOCK):
        if _file(call).get(ident) is not None:
            raise PveError(f"Metric server '{ident}' already exists")
        _file(call).put(ident, _KINDS[call.params["type"]].validate(_settings(call), create=True))
        if call.params.get("token"):
            call.store.put(TOKENS, ident, {"token": call.params["token"]})


@route("PUT /cluster/metrics/server/{id}")
def update_server(call: Call) -> Any:
    """Change a server."""
    ident = call.params["id"]
    removed = split_list(call.params.get("delete", ""))
    with call.world.cluster.lock_file(_LOCK):
        _file(call).check_digest(call.params.get("digest"))
        old = _file(call).get(ident)
        if old is None:
            raise PveError(f"no such server '{ident}'")
        kind = _KINDS[old["type"]]
        given = kind.validate(_settings(call), create=False)
        _file(call).put(ident, {**kind.without(old, removed, given), **given})
        if call.params.get("token"):
            call.store.put(TOKENS, ident, {"token": call.params["token"]})
        elif "token" in removed:
            call.store.delete(TOKENS, ident)


@route("DELETE /cluster/metrics/server/{id}")
def delete_server(call: Call) -> Any:
    """Remove a server."""
    with call.world.cluster.lock_file(_LOCK):
        if _file(call).get(call.params["id"]) is None:
            # Proxmox asks for the type of the missing server.
            raise PveError("cannot lookup undefined type!")
        _file(call).remove(call.params["id"])
        call.store.delete(TOKENS, call.params["id"])


def _file(call: Call) -> SectionFile:
    return SectionFile(call.store, "metric_servers")


def _settings(call: Call) -> dict[str, Any]:
    return {key: value for key, value in call.params.items() if key not in _NOT_SETTINGS}
