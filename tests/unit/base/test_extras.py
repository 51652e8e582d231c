"""What is said where an optional part is needed and not installed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from stackyard.base import extras
from stackyard.sources.deployment.schema import OwnSchema

# A store at each address, in a Python that has none of the optional parts.
SCRIPT = """
import json, sys
class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"boto3", "botocore", "psycopg", "urllib3", "jsonschema_rs"}:
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)
sys.meta_path.insert(0, Nothing())
from pathlib import Path
from stackyard.base.errors import StackyardError
from stackyard.clients.objects import open_objects
from stackyard.sources.deployment.schema import OwnSchema
said = {}
for extra, open_one in {
    "s3": lambda: open_objects("s3://bucket/prefix"),
    "postgres": lambda: open_objects("postgresql://u@localhost/db"),
    "schema": lambda: OwnSchema(Path("own.json")),
}.items():
    try:
        open_one()
    except StackyardError as err:
        said[extra] = [err.code, err.detail, err.remedy]
print(json.dumps(said))
"""


def test_a_missing_extra_is_one_error_that_says_what_to_type() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    said = json.loads(done.stdout)
    assert said.keys() == extras.EXTRAS.keys()
    for extra, (code, detail, remedy) in said.items():
        assert code == "E-EXTRA-MISSING"
        assert f"the extra `{extra}`" in detail
        assert f"pipx install 'stackyard[{extra}]'" in remedy
        assert f"uv tool install 'stackyard[{extra}]'" in remedy
        assert f"python -m pip install 'stackyard[{extra}]'" in remedy


def test_an_import_of_our_own_that_fails_is_no_missing_extra() -> None:
    with pytest.raises(ImportError, match="nothing_there"), extras.needed("s3", "A store in S3"):
        import stackyard.nothing_there  # type: ignore[import-not-found]  # noqa: F401


@pytest.mark.parametrize(
    ("receipt", "by"),
    [
        ("pipx_metadata.json", extras.InstalledBy.PIPX),
        ("uv-receipt.toml", extras.InstalledBy.UV),
        ("stackyard-install.txt", extras.InstalledBy.INSTALL_SH),
    ],
)
def test_what_installed_it_is_seen_from_what_it_left(
    receipt: str, by: extras.InstalledBy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert extras.how_installed() is extras.InstalledBy.EDITABLE
    (tmp_path / receipt).touch()
    assert extras.how_installed() is by


def test_an_own_schema_is_read_where_its_extra_is_installed(tmp_path: Path) -> None:
    own = tmp_path / "own.json"
    own.write_text('{"required": ["domain"]}')
    assert [message for _, message in OwnSchema(own).errors({})] == ['"domain" is a required property']
