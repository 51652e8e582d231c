"""From a DynamoDB lock table to the lock object: both locks, a proof from bucket and table, then one lock."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3  # type: ignore[import-untyped]
import pytest
from tests.support.moto_server import moto_server
from tests.support.stack_repo import StackRepo, make_repo

__all__ = ["moto_server"]

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

FOLDER = "stacks/onprem/a"
KEY = "onprem/a.tfstate"
TABLE = "locks"
_CREDENTIALS = {"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any", "AWS_REGION": "us-east-1"}


@contextlib.contextmanager
def _client(service: str, address: str) -> Iterator[Any]:
    client = boto3.client(
        service,
        endpoint_url=address,
        region_name="us-east-1",
        aws_access_key_id="any",
        aws_secret_access_key="any",
    )
    with contextlib.closing(client):
        yield client


def _make_backend(address: str, *, is_versioned: bool) -> tuple[str, str, str]:
    """Make a bucket and a table; return their names and the backend block."""
    number = uuid.uuid4().hex[:10]
    bucket, table = f"states-{number}", f"{TABLE}-{number}"
    with _client("s3", address) as s3, _client("dynamodb", address) as dynamodb:
        s3.create_bucket(Bucket=bucket)
        if is_versioned:
            s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
        dynamodb.create_table(
            TableName=table,
            AttributeDefinitions=[{"AttributeName": "LockID", "AttributeType": "S"}],
            KeySchema=[{"AttributeName": "LockID", "KeyType": "HASH"}],
            BillingMode="PAY_PER_REQUEST",
        )
    text = f"""
        terraform {{
          backend "s3" {{
            bucket         = "{bucket}"
            key            = "{KEY}"
            region         = "us-east-1"
            dynamodb_table = "{table}" # the old lock
            endpoints      = {{ s3 = "{address}", dynamodb = "{address}" }}
            use_path_style = true
            skip_credentials_validation = true
            skip_metadata_api_check     = true
            skip_region_validation      = true
            skip_requesting_account_id  = true
          }}
        }}
    """
    return bucket, table, text


def _main(value: int) -> str:
    return f'resource "terraform_data" "x" {{ input = {value} }}\n'


def _status(repo: StackRepo, *words: str) -> tuple[str, str]:
    [found] = repo.json("stack", "lock-table", "status", *words)["stacks"]
    return found["status"], " ".join(found["details"])


def _next_second() -> int:
    """Wait until the clock shows another second, which is all that times in a bucket tell; return it."""
    begun = int(time.time())
    while int(time.time()) == begun:
        # A wait may end a moment too early.
        threading.Event().wait(begun + 1 - time.time())
    return int(time.time())


def _commit(repo: StackRepo) -> None:
    _next_second()
    repo.commit()


def _apply(repo: StackRepo, value: int) -> None:
    repo.write({f"{FOLDER}/main.tf": _main(value)})
    repo.run("apply", "stack:onprem/a", "--yes", "--allow-dirty")


def _apply_without(repo: StackRepo, folder: Path, setting: str, value: int) -> None:
    """Apply with the bare engine, as a client whose backend lacks one of the two locks."""
    folder.mkdir()
    lines = (repo.root / FOLDER / "backend.tf").read_text().splitlines(keepends=True)
    (folder / "backend.tf").write_text("".join(line for line in lines if setting not in line))
    (folder / "main.tf").write_text(_main(value))
    for words in (("init", "-input=false"), ("apply", "-auto-approve", "-input=false")):
        subprocess.run(
            (repo.env["STACKYARD_TOFU"], *words),
            cwd=folder,
            env={"PATH": os.environ["PATH"], "HOME": str(folder), "CHECKPOINT_DISABLE": "1", **_CREDENTIALS},
            check=True,
            capture_output=True,
        )


def test_the_table_goes_once_the_bucket_shows_that_every_client_has_both_locks(
    tmp_path: Path, moto_server: str
) -> None:
    bucket, table, backend = _make_backend(moto_server, is_versioned=True)
    files = {f"{FOLDER}/main.tf": _main(1), f"{FOLDER}/backend.tf": backend}
    repo = make_repo(tmp_path / "repo", files, env=_CREDENTIALS)
    _apply(repo, 1)
    assert _status(repo)[0] == "no lockfile"

    # Both: one line more, and nothing else.
    before = (repo.root / FOLDER / "backend.tf").read_text()
    assert repo.json("stack", "lock-table", "add-lockfile")["changed"] == [f"{FOLDER}/backend.tf"]
    both = (repo.root / FOLDER / "backend.tf").read_text()
    assert both.replace("    use_lockfile = true\n", "") == before
    assert _status(repo)[0] == "not merged"
    # A bucket has whole seconds: what was written in that of the commit counts as written since.
    _next_second()
    _commit(repo)
    status, details = _status(repo)
    assert (status, "No version was written since" in details) == ("unproven", True)
    repo.run("stack", "lock-table", "drop", status=1)
    assert (repo.root / FOLDER / "backend.tf").read_text() == both
    _apply(repo, 2)
    assert _status(repo)[0] == "proven"

    # A client with the table alone is seen by what it wrote, and by name while it holds the table.
    _next_second()
    _apply_without(repo, tmp_path / "old-client", "use_lockfile", 3)
    status, details = _status(repo)
    assert (status, "A client without use_lockfile wrote" in details) == ("refuted", True)
    refused = repo.run("stack", "lock-table", "drop", "--without-proof", status=1)
    assert "refuted" in refused.stdout
    since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(_next_second()))
    _apply(repo, 4)
    assert _status(repo, "--since", since)[0] == "proven"
    state = f"{bucket}/{KEY}"
    with _client("dynamodb", moto_server) as dynamodb:
        info = json.dumps({"ID": "1", "Who": "carl@old-laptop", "Operation": "OperationTypeApply"})
        item = {"LockID": {"S": state}, "Info": {"S": info}}
        dynamodb.put_item(TableName=table, Item=item)
        status, details = _status(repo, "--since", since)
        assert (status, "carl@old-laptop holds" in details) == ("refuted", True)
        dynamodb.delete_item(TableName=table, Key={"LockID": {"S": state}})

    # The table goes from the code, then from the default branch, then from AWS.
    repo.run("stack", "lock-table", "drop", "--since", since)
    dropped = (repo.root / FOLDER / "backend.tf").read_text()
    assert "dynamodb_table" not in dropped
    assert "use_lockfile = true" in dropped
    early = repo.run("stack", "lock-table", "delete", table, status=1)
    assert "On the default branch" in early.stderr
    repo.commit()
    with _client("dynamodb", moto_server) as dynamodb:
        dynamodb.put_item(TableName=table, Item=item)
        held = repo.run("stack", "lock-table", "delete", table, status=1)
        assert "carl@old-laptop" in held.stderr
        dynamodb.delete_item(TableName=table, Key={"LockID": {"S": state}})
        dynamodb.put_item(TableName=table, Item={"LockID": {"S": "other/x-md5"}, "Digest": {"S": "0"}})
        others = repo.run("stack", "lock-table", "delete", table, status=1)
        assert "other/x" in others.stderr
        dynamodb.delete_item(TableName=table, Key={"LockID": {"S": "other/x-md5"}})
        repo.run("stack", "lock-table", "delete", table)
        assert table not in dynamodb.list_tables()["TableNames"]
    _apply(repo, 5)
    assert repo.json("stack", "lock-table", "status")["stacks"] == []


def test_what_cannot_be_seen_is_never_proven(tmp_path: Path, moto_server: str) -> None:
    bucket, table, backend = _make_backend(moto_server, is_versioned=True)
    files = {f"{FOLDER}/main.tf": _main(1), f"{FOLDER}/backend.tf": backend}
    repo = make_repo(tmp_path / "repo", files, env=_CREDENTIALS)
    repo.run("stack", "lock-table", "add-lockfile")
    _commit(repo)
    _apply(repo, 1)
    assert _status(repo)[0] == "proven"
    # The last commit of a shallow clone looks as if it had brought everything.
    copy = tmp_path / "shallow"
    repo.git("clone", "-q", "--depth", "1", f"file://{repo.root}", str(copy))
    status, details = _status(StackRepo(root=copy, env=repo.env))
    assert (status, "shallow" in details) == ("unproven", True)

    with _client("s3", moto_server) as s3, _client("dynamodb", moto_server) as dynamodb:
        # Versions that a rule has removed by now may have been written without the lock object.
        rule = {
            "ID": "old",
            "Status": "Enabled",
            "Filter": {"Prefix": "onprem/"},
            "NoncurrentVersionExpiration": {"NoncurrentDays": 30},
        }
        s3.put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration={"Rules": [rule]})
        assert _status(repo)[0] == "proven"
        status, details = _status(repo, "--since", "2020-01-01T00:00:00Z")
        assert (status, "after 30 days" in details) == ("unproven", True)
        s3.delete_bucket_lifecycle(Bucket=bucket)

        # A workspace that nobody wrote since shows nothing of its clients.
        other = f"env:/prod/{KEY}"
        s3.put_object(Bucket=bucket, Key=other, Body=b"{}")
        item = {"LockID": {"S": f"{bucket}/{other}-md5"}, "Digest": {"S": hashlib.md5(b"{}").hexdigest()}}
        dynamodb.put_item(TableName=table, Item=item)
        since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(_next_second()))
        _apply(repo, 2)
        status, details = _status(repo, "--since", since)
        assert (status, f"{other} was not written since" in details) == ("unproven", True)
        # Deleted since, its versions still show who wrote it.
        s3.delete_object(Bucket=bucket, Key=other)
        status, details = _status(repo, "--since", "2020-01-01T00:00:00Z")
        assert (status, f"A client without use_lockfile wrote {bucket}/{other}" in details) == (
            "refuted",
            True,
        )

        # While versions are suspended, one write replaces the other.
        s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Suspended"})
        since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(_next_second()))
        _apply(repo, 3)
        s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
        _apply(repo, 4)
        assert _status(repo, "--since", since)[0] != "proven"


def test_a_table_that_others_may_use_is_not_deleted(tmp_path: Path, moto_server: str) -> None:
    bucket, table, backend = _make_backend(moto_server, is_versioned=True)
    plain = backend.replace("dynamodb_table", "# dynamodb_table").replace(KEY, "terraform.tfstate")
    files = {f"{FOLDER}/main.tf": _main(1), f"{FOLDER}/backend.tf": plain}
    repo = make_repo(tmp_path / "repo", files, env=_CREDENTIALS)
    with _client("dynamodb", moto_server) as dynamodb:
        # Another repository has states of the same name in other folders.
        item = {"LockID": {"S": "others/prod/terraform.tfstate-md5"}, "Digest": {"S": "0"}}
        dynamodb.put_item(TableName=table, Item=item)
        refused = repo.run("stack", "lock-table", "delete", table, status=1)
        assert "others/prod/terraform.tfstate" in refused.stderr
        dynamodb.delete_item(TableName=table, Key={"LockID": item["LockID"]})

        # A stack whose table only OpenTofu can compute may use this one.
        named = backend.replace(f'dynamodb_table = "{table}"', "dynamodb_table = var.table")
        repo.write({"stacks/onprem/b/main.tf": named})
        assert "cannot be read" in repo.run("stack", "lock-table", "delete", table, status=1).stderr
        # A stack of the default branch that is not here uses it.
        repo.write({"stacks/onprem/b/main.tf": backend})
        repo.commit()
        shutil.rmtree(repo.root / "stacks/onprem/b")
        merged = repo.run("stack", "lock-table", "delete", table, status=1)
        assert "On the default branch, stacks/onprem/b/main.tf names" in merged.stderr
        repo.commit()
        # Its own states, and those of workspaces, are known.
        for name in ("", "env:/prod/"):
            own = {"LockID": {"S": f"{bucket}/{name}terraform.tfstate-md5"}, "Digest": {"S": "0"}}
            dynamodb.put_item(TableName=table, Item=own)
        repo.run("stack", "lock-table", "delete", table)
        assert table not in dynamodb.list_tables()["TableNames"]


def test_a_client_without_the_table_is_seen_by_the_digest_and_no_versions_are_no_proof(
    tmp_path: Path, moto_server: str
) -> None:
    _, _, backend = _make_backend(moto_server, is_versioned=False)
    files = {f"{FOLDER}/main.tf": _main(1), f"{FOLDER}/backend.tf": backend}
    repo = make_repo(tmp_path / "repo", files, env=_CREDENTIALS)
    repo.run("stack", "lock-table", "add-lockfile")
    repo.commit()
    _apply(repo, 1)
    status, details = _status(repo)
    assert (status, "keeps no versions" in details) == ("unproven", True)
    _apply_without(repo, tmp_path / "new-client", "dynamodb_table", 2)
    status, details = _status(repo)
    assert (status, "A client without the table wrote" in details) == ("refuted", True)
