"""Everything that the controller answers, as a table: it routes requests and becomes the OpenAPI document."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["READ", "ROUTES", "Route"]

READ = ("GET", "HEAD")
_ERRORS = (400, 405, 431)


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A path that is answered.

    Attributes:
        name: What metrics and handlers call it.
        path: Its template.
        methods: What may be done there.
        summary: What it gives, for the reference.
        content: The type of the body of an answer.
        needs_token: Whether a token may be asked for.
        statuses: How it may answer, beside what every path may.
        query: Parameters, with what they mean.
    """

    name: str
    path: str
    methods: tuple[str, ...] = READ
    summary: str
    content: str = "application/json"
    needs_token: bool = False
    statuses: tuple[int, ...] = (200,)
    query: tuple[tuple[str, str], ...] = ()

    @property
    def all_statuses(self) -> tuple[int, ...]:
        """Every status that it may answer with."""
        token = (401, 403, 429) if self.needs_token else ()
        return tuple(sorted({*self.statuses, *token, *_ERRORS}))


ROUTES = (
    Route(
        name="health",
        path="/health",
        summary="Whether the controller answers; 503 while the store of its states takes no writes.",
        statuses=(200, 503),
    ),
    Route(name="specs", path="/specs", summary="The names of all specs."),
    Route(
        name="spec",
        path="/spec/{identity}",
        summary=(
            "The spec of a guest, or of the spec of this name, with nothing left to look up. Who may have it "
            "is what the posture of the spec says: anybody (`network`), the token of the site (`site_token`) "
            "or the token of this one node (`node_token`); a signed token for it opens it too."
        ),
        needs_token=True,
        statuses=(200, 404, 422),
        query=(("format", "`json` (default), `yaml`, or `shell`: a script that applies it"),),
    ),
    Route(
        name="git-refs",
        path="/{repo}.git/info/refs",
        summary="Where a clone or fetch begins: smart with `service`, dumb without.",
        content="application/x-git-upload-pack-advertisement",
        needs_token=True,
        statuses=(200, 404),
        query=(("service", "`git-upload-pack` for the smart protocol (versions 0 to 2)"),),
    ),
    Route(
        name="git-pack",
        path="/{repo}.git/git-upload-pack",
        methods=("POST",),
        summary="The smart protocol: a client sends what it has and what it needs, and gets the rest.",
        content="application/x-git-upload-pack-result",
        needs_token=True,
        statuses=(200, 404, 413, 415),
    ),
    Route(
        name="file",
        path="/{repo}.git/{path}",
        summary=(
            "A file of the dumb protocol (`HEAD`, `info/`, `objects/`, `packed-refs`), else a file of the "
            "working tree, committed or not; ignored files and files with secrets are not there."
        ),
        content="application/octet-stream",
        needs_token=True,
        statuses=(200, 206, 404),
    ),
    Route(
        name="metrics",
        path="/metrics",
        summary="Counts in the text format of Prometheus.",
        content="text/plain",
    ),
    Route(name="openapi", path="/openapi.json", summary="This document."),
)
