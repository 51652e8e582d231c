"""`proxmox_metrics_server`: a server that nodes send their metrics to."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from stackyard.provider.checks import at_least, between, one_of
from stackyard.provider.crud import Collection
from stackyard.provider.fields import FLAG, NUMBER, TEXT, Field
from stackyard.provider.kinds import both_names
from stackyard.provider.problems import Problem
from stackyard.provider.schema import Rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["PATH", "RESOURCE", "SERVER_FIELDS", "unsaid_values"]

PATH = "/cluster/metrics/server"
_VERSION = "influx_token_wo_version"
SERVER_FIELDS = (
    Field(attribute="type", form=TEXT, create_only=True, clears=False),
    Field(attribute="server", form=TEXT, clears=False),
    Field(attribute="port", form=NUMBER, clears=False),
    Field(attribute="disable", form=FLAG, clears=False),
    Field(attribute="mtu", form=NUMBER),
    Field(attribute="timeout", form=NUMBER),
    Field(attribute="graphite_path", key="path", form=TEXT),
    Field(attribute="graphite_proto", key="proto", form=TEXT),
    Field(attribute="influx_api_path_prefix", key="api-path-prefix", form=TEXT),
    Field(attribute="influx_bucket", key="bucket", form=TEXT),
    Field(attribute="influx_db_proto", key="influxdbproto", form=TEXT),
    Field(attribute="influx_max_body_size", key="max-body-size", form=NUMBER),
    Field(attribute="influx_organization", key="organization", form=TEXT),
    Field(attribute="influx_token", key="token", form=TEXT, secret=True, write_only="influx_token_wo"),
    Field(attribute="influx_verify", key="verify-certificate", form=FLAG),
    Field(attribute="opentelemetry_compression", key="otel-compression", form=TEXT),
    Field(attribute="opentelemetry_headers", key="otel-headers", form=TEXT),
    Field(attribute="opentelemetry_max_body_size", key="otel-max-body-size", form=NUMBER),
    Field(attribute="opentelemetry_path", key="otel-path", form=TEXT),
    Field(attribute="opentelemetry_proto", key="otel-protocol", form=TEXT),
    Field(attribute="opentelemetry_resource_attributes", key="otel-resource-attributes", form=TEXT),
    Field(attribute="opentelemetry_timeout", key="otel-timeout", form=NUMBER),
    Field(attribute="opentelemetry_verify_ssl", key="otel-verify-ssl", form=FLAG),
)


def unsaid_values(found: Mapping[str, Any]) -> Object:
    """Return what holds of a server that says nothing of it."""
    return {"disable": False} if found.get("disable") is None else {}


def _at_most(most: int, value: Any) -> str | None:
    return None if len(str(value)) <= most else f"must have at most {most} characters"


def _check(config: Object) -> Iterator[Problem]:
    if config.get("influx_token") is not None and config.get("influx_token_wo") is not None:
        yield Problem(
            path=("influx_token",), detail="`influx_token` and `influx_token_wo` exclude each other."
        )
    if config.get(_VERSION) is not None and config.get("influx_token_wo") is None:
        yield Problem(path=(_VERSION,), detail=f"`{_VERSION}` needs `influx_token_wo`.")


_SERVERS = Collection(
    path=PATH,
    key="id",
    attribute="name",
    fields=SERVER_FIELDS,
    own_state=lambda known, found: unsaid_values(found),
    made_at_own_path=True,
    each=True,
)


async def _update(work: Work, prior: Object, planned: Object) -> Object:
    if prior.get(_VERSION) is not None and planned.get(_VERSION) is None:
        # There is a token that no state has. It goes unless another one takes its place.
        prior = {**prior, "influx_token": "written only"}
    return await _SERVERS.update(work, prior, planned)


_SERVER = _SERVERS.resource(
    both_names("metrics_server"),
    rules={
        "id": Rule(keep=True),
        "name": Rule(replace=True),
        "type": Rule(replace=True, check=one_of("graphite", "influxdb", "opentelemetry")),
        "disable": Rule(default=False),
        "mtu": Rule(check=between(512, 65536)),
        "port": Rule(check=between(1, 65536)),
        "influx_db_proto": Rule(check=one_of("udp", "http", "https")),
        "graphite_proto": Rule(check=one_of("udp", "tcp")),
        "opentelemetry_proto": Rule(check=one_of("http", "https")),
        "opentelemetry_timeout": Rule(check=between(1, 10)),
        "opentelemetry_headers": Rule(check=lambda value: _at_most(1024, value)),
        "opentelemetry_max_body_size": Rule(check=at_least(1024)),
        "opentelemetry_resource_attributes": Rule(check=lambda value: _at_most(1024, value)),
        "opentelemetry_compression": Rule(check=one_of("none", "gzip")),
    },
    validate=_check,
)

RESOURCE = dataclasses.replace(_SERVER, update=_update)
