"""The paths of a Kubernetes API: discovery, objects, lists and watches."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import orjson
import yaml

from pvelab.kubernetes import problems
from pvelab.kubernetes.discovery import describe
from pvelab.kubernetes.operations import Cluster, Target
from pvelab.kubernetes.permissions import Demand, User, find_user, is_allowed
from pvelab.kubernetes.record import Record, Writer
from pvelab.kubernetes.selectors import read_selectors
from pvelab.kubernetes.watching import stream_changes
from stackyard.base.documents.jsontext import JsonError, parse_json
from stackyard.base.documents.yamltext import parse_yaml
from stackyard.base.serving import respond

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiohttp import web

__all__ = ["KubernetesApi"]

_STRATEGIC = "application/strategic-merge-patch+json"
_APPLY = "application/apply-patch+yaml"
_PATCHES = (_APPLY, _STRATEGIC, "application/merge-patch+json")
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_OPEN = ("/version", "/healthz", "/livez", "/readyz")


class _UnservedError(Exception):
    """The path is of no group and kind that is served."""


@dataclass(slots=True)
class KubernetesApi:
    """Answers requests.

    Attributes:
        cluster: What it serves.
        tokens: Which tokens belong to whom.
        version: The version that it says it has.
    """

    cluster: Cluster = field(default_factory=Cluster)
    tokens: dict[str, User] = field(default_factory=dict, repr=False)
    version: str = "v1.36.3"

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a request."""
        try:
            return await self._answer(request)
        except problems.KubeStatusError as problem:
            return _respond(problem.code, problem.document())
        except _UnservedError:
            return respond(404, b"404 page not found\n", content_type="text/plain; charset=utf-8")

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.path.rstrip("/") or "/"
        if path in _OPEN[1:]:
            return respond(200, b"ok", content_type="text/plain")
        user = find_user(request, self.tokens)
        if user is None:
            raise problems.unauthorized()
        if path == "/version":
            major, minor, *_ = self.version.lstrip("v").split(".")
            return _respond(200, {"major": major, "minor": minor, "gitVersion": self.version})
        found = describe(path, self.cluster.list_kinds())
        if found is not None:
            return _respond(200, found)
        target = self._find_target(path)
        query = request.query
        is_watch = query.get("watch") in ("true", "1")
        verb = _VERBS.get(request.method) or ("watch" if is_watch else "get" if target.name else "list")
        demand = Demand(
            verb=verb, group=target.kind.group, resource=target.kind.plural, namespace=target.namespace
        )
        if not is_allowed(self.cluster.store, user, demand):
            raise problems.forbidden(user.name, verb, demand.resource, demand.group, demand.namespace)
        if is_watch:
            return await stream_changes(request, self.cluster.store, target)
        if request.method == "GET":
            return self._get(target, query)
        return await self._change(request, target, verb)

    def _find_target(self, path: str) -> Target:
        """Return what a path is about.

        Raises:
            _UnservedError: The cluster does not serve it.
        """
        first, *parts = path.strip("/").split("/")
        parts = ["", *parts] if first == "api" else parts
        if first not in ("api", "apis") or len(parts) < 3:
            raise _UnservedError
        (group, version), rest = parts[:2], parts[2:]
        namespace = ""
        if len(rest) > 2 and rest[0] == "namespaces" and rest[2] not in ("status", "finalize"):
            namespace, rest = rest[1], rest[2:]
        for kind in self.cluster.list_kinds():
            if rest and (kind.group, kind.version, kind.plural) == (group, version, rest[0]):
                name, subresource = (*rest[1:], "", "")[:2]
                return Target(kind=kind, namespace=namespace, name=name, subresource=subresource)
        raise _UnservedError

    def _get(self, target: Target, query: Mapping[str, str]) -> web.Response:
        if target.name:
            return _respond(200, self.cluster.read(target).document(target.kind.api_version))
        selects = read_selectors(query.get("labelSelector", ""), query.get("fieldSelector", ""))
        kind, store = target.kind, self.cluster.store
        rows = [
            (key, record)
            for key, record in store.list_records(kind.group, kind.plural, target.namespace)
            if selects(record.object)
        ]
        version = str(store.version)
        if token := query.get("continue"):
            version, after = parse_json(base64.b64decode(token))
            rows = [row for row in rows if [row[0].namespace, row[0].name] > after]
        limit = int(query.get("limit") or 0)
        metadata: dict[str, Any] = {"resourceVersion": version}
        if limit and len(rows) > limit:
            rows, left = rows[:limit], len(rows) - limit
            last = [rows[-1][0].namespace, rows[-1][0].name]
            metadata["continue"] = base64.b64encode(orjson.dumps([version, last])).decode()
            metadata["remainingItemCount"] = left
        return _respond(
            200,
            {
                "kind": f"{kind.kind}List",
                "apiVersion": kind.api_version,
                "metadata": metadata,
                "items": [record.document(kind.api_version) for _, record in rows],
            },
        )

    async def _change(self, request: web.BaseRequest, target: Target, verb: str) -> web.Response:
        body = _read_body(await request.read(), request.content_type)
        query = request.query
        is_dry = query.get("dryRun") == "All"
        agent = request.headers.get("User-Agent", "unknown").partition("/")[0]
        writer = Writer(
            manager=query.get("fieldManager") or agent,
            force=query.get("force") in ("true", "1"),
            subresource=target.subresource,
        )
        if verb == "delete":
            return self._delete(target, body)
        if verb == "create":
            return self._written(201, target, self.cluster.create(target, body, writer, is_dry=is_dry))
        if verb == "update":
            return self._written(200, target, self.cluster.update(target, body, writer, is_dry=is_dry))
        if request.content_type not in _PATCHES:
            raise problems.KubeStatusError(
                415, "UnsupportedMediaType", f"{request.content_type} is not supported"
            )
        if request.content_type == _APPLY:
            if not query.get("fieldManager"):
                raise problems.bad_request(
                    "PatchOptions.meta.k8s.io is invalid: fieldManager: Required value"
                )
            record, is_new = self.cluster.apply(target, body, writer, is_dry=is_dry)
            return self._written(201 if is_new else 200, target, record)
        is_strategic = request.content_type == _STRATEGIC
        return self._written(200, target, self.cluster.patch(target, body, writer, is_strategic=is_strategic))

    def _delete(self, target: Target, options: Mapping[str, Any]) -> web.Response:
        if target.name:
            return self._written(200, target, self.cluster.delete(target, options))
        kind = target.kind
        for key, _ in self.cluster.store.list_records(kind.group, kind.plural, target.namespace):
            self.cluster.delete(replace(target, namespace=key.namespace, name=key.name), options)
        return _respond(200, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"})

    def _written(self, status: int, target: Target, record: Record) -> web.Response:
        return _respond(status, record.document(target.kind.api_version))


def _read_body(data: bytes, content_type: str) -> dict[str, Any]:
    try:
        body = parse_yaml(data) if content_type.endswith("yaml") else parse_json(data or b"{}")
    except (JsonError, yaml.YAMLError) as err:
        raise problems.bad_request(f"the body cannot be decoded: {err}") from err
    if not isinstance(body, dict):
        raise problems.bad_request("the body is not an object")
    return body


def _respond(status: int, document: Mapping[str, Any]) -> web.Response:
    return respond(status, orjson.dumps(document))
