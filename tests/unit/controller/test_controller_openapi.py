"""The document says what the controller does: every route, every code, and nothing that is not there."""

from __future__ import annotations

import re
from pathlib import Path

import jsonschema_rs
import orjson
from tests.support.controller import REPO_TOKEN, asking, make_site, repository, running

from stackyard.controller.openapi import openapi, render_page
from stackyard.controller.refusals import Code
from stackyard.controller.routes import ROUTES

FILLED = {"identity": "base", "repo": "bootstrap", "path": "install.sh"}


async def test_every_route_answers_and_is_in_the_document(tmp_path: Path) -> None:
    repository(tmp_path / "bootstrap")

    async with running(make_site(tmp_path), repos=True) as found, asking(found) as client:
        assert (await client("/openapi.json")).document == openapi()
        for route in ROUTES:
            path = re.sub(r"{(\w+)}", lambda match: FILLED[match[1]], route.path)
            if route.methods == ("POST",):
                continue
            answer = await client(path, REPO_TOKEN)
            assert answer.status == 200, path
            assert route.path in openapi()["paths"]


def test_the_document_is_whole() -> None:
    document = openapi()
    assert document["openapi"] == "3.1.0"
    assert sorted(document["paths"]) == sorted({route.path for route in ROUTES})
    for path, operations in document["paths"].items():
        for operation in operations.values():
            named = {one["name"] for one in operation["parameters"] if one["in"] == "path"}
            assert named == set(re.findall(r"{(\w+)}", path))
            assert operation["operationId"]
            assert operation["summary"].endswith(".")
    identifiers = [one["operationId"] for paths in document["paths"].values() for one in paths.values()]
    assert len(identifiers) == len(set(identifiers))
    orjson.dumps(document)


def test_every_code_has_a_meaning_and_is_in_the_schema_and_on_the_page() -> None:
    validator = jsonschema_rs.validator_for(openapi()["components"]["schemas"]["Error"])
    page = render_page()
    for code in Code:
        assert code.meaning
        assert f"`{code}`" in page
        assert validator.is_valid({"error": {"code": str(code), "message": "x"}})
    assert not validator.is_valid({"error": {"code": "E999", "message": "x"}})
    assert not validator.is_valid({"error": {"code": "E100", "message": "x", "trace": "y"}})
