"""The configuration of the engine's own S3 backend, and dropping the DynamoDB table from it."""

from __future__ import annotations

import json

import pytest

from stackyard.base.errors import UsageError
from stackyard.state.s3_backend import BackendFileError, S3Backend, drop_dynamodb, render_hcl, render_json

PLAIN = S3Backend(bucket="tofu", key="prod/terraform.tfstate", region="eu-central-1")
BOTH = S3Backend(bucket="tofu", key="prod/terraform.tfstate", dynamodb_table="locks")


def test_the_lock_is_in_the_bucket() -> None:
    assert PLAIN.settings() == {
        "bucket": "tofu",
        "key": "prod/terraform.tfstate",
        "region": "eu-central-1",
        "use_lockfile": True,
    }


def test_a_store_that_is_not_aws_is_not_asked_what_only_aws_knows() -> None:
    settings = S3Backend(bucket="b", key="k", endpoint="http://127.0.0.1:8333").settings()
    assert settings["endpoints"] == {"s3": "http://127.0.0.1:8333"}
    assert settings["use_path_style"] is True
    assert settings["skip_requesting_account_id"] is True


def test_the_table_stands_beside_the_lock_for_as_long_as_it_takes() -> None:
    assert BOTH.settings()["dynamodb_table"] == "locks"
    assert BOTH.settings()["use_lockfile"] is True


def test_dropping_the_table_gives_what_is_rendered_without_one() -> None:
    without = S3Backend(bucket="tofu", key="prod/terraform.tfstate")
    assert json.loads(drop_dynamodb(render_json(BOTH), "backend.tf.json")) == json.loads(render_json(without))
    dropped = drop_dynamodb(render_hcl(BOTH), "backend.tf")
    assert "dynamodb" not in dropped
    assert [line.split() for line in dropped.splitlines()] == [
        line.split() for line in render_hcl(without).splitlines()
    ]


def test_every_other_line_of_a_file_stays_as_it_is() -> None:
    text = '# ours\nuse_lockfile = true # new\n  dynamodb_table="locks" # old\nbucket = "b"\n'
    assert drop_dynamodb(text, "prod.tfbackend") == '# ours\nuse_lockfile = true # new\nbucket = "b"\n'


@pytest.mark.parametrize(
    ("text", "path", "reason"),
    [
        ('dynamodb_table = "locks"\n', "a.tf", "use_lockfile"),
        ('use_lockfile = false\ndynamodb_table = "locks"\n', "a.tf", "use_lockfile"),
        ("use_lockfile = true\n", "a.tf", "no dynamodb_table"),
        ('use_lockfile = true\ndynamodb_table = "a"\ndynamodb_table = "b"\n', "a.tf", "more than one"),
        ('# dynamodb_table = "a"\nuse_lockfile = true\n', "a.tf", "no dynamodb_table"),
        ("{}", "a.tf.json", "no S3 backend"),
        ("nonsense", "a.tf.json", "no S3 backend"),
        ('{"terraform":{"backend":{"s3":{"dynamodb_table":"a"}}}}', "a.tf.json", "use_lockfile"),
    ],
)
def test_a_file_that_would_lock_nothing_is_left_alone(text: str, path: str, reason: str) -> None:
    with pytest.raises(BackendFileError, match=reason):
        drop_dynamodb(text, path)


def test_text_that_would_be_an_expression_stays_text() -> None:
    assert '"a$${b}"' in render_hcl(S3Backend(bucket="a${b}", key="k"))


@pytest.mark.parametrize(("bucket", "key"), [("", "k"), ("b", ""), ("b", "/k"), ("b", "k/")])
def test_a_place_that_makes_no_sense_is_refused(bucket: str, key: str) -> None:
    with pytest.raises(UsageError):
        render_hcl(S3Backend(bucket=bucket, key=key))
