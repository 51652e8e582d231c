"""The recipe for AWS, applied through stackyard with the real provider.

It needs a server that answers like AWS, such as moto: `STACKYARD_TEST_AWS=http://127.0.0.1:5000`.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3  # type: ignore[import-untyped]
import pytest
from tests.support.recipes import AWS, copy_stack, mirror
from tests.support.stack_lab import ansible_inventory
from tests.support.stack_repo import StackRepo

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(400)]

SERVER = "STACKYARD_TEST_AWS"
STACK = "cloud/aws_global"
REGION = "eu-central-1"
_KEYS = {"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any"}
_DATA = """
region = "{region}"
tags   = {{ managed-by = "stackyard" }}
networks = {{
  main = {{ cidr = "10.20.0.0/16" }}
}}
subnets = {{
  front = {{ network = "main", cidr = "10.20.1.0/24", availability_zone = "{region}a", public = true }}
  back  = {{ network = "main", cidr = "10.20.2.0/24" }}
}}
instances = {{
  web = {{
    subnet   = "front"
    ami_id   = "{image}"
    ssh_user = "admin"
    groups   = ["frontend"]
    ingress  = {{ https = {{ from_port = 443, cidr = "0.0.0.0/0" }} }}
  }}
  db = {{ subnet = "back", ami_id = "{image}", root_volume_gib = 20 }}
}}
buckets = {{
  "{bucket}" = {{}}
}}
"""


@dataclass(frozen=True, kw_only=True)
class Cloud:
    """A repository with the stack, and clients of the server that it is for."""

    repo: StackRepo
    bucket: str
    ec2: Any
    s3: Any

    @property
    def data(self) -> Path:
        return self.repo.root / "stacks" / STACK / "resources.tfvars"

    def instance(self, ident: str) -> dict[str, Any]:
        """Return what the server says about an instance."""
        (found,) = self.ec2.describe_instances(InstanceIds=[ident])["Reservations"]
        (instance,) = found["Instances"]
        result: dict[str, Any] = instance
        return result


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cloud]:
    url = os.environ.get(SERVER)
    if not url:
        pytest.skip(f"{SERVER} names no server that answers like AWS, such as moto")
    AWS.require()
    for name, value in _KEYS.items():
        monkeypatch.setenv(name, value)
    ec2, s3 = (boto3.client(kind, endpoint_url=url, region_name=REGION) for kind in ("ec2", "s3"))
    repo = copy_stack(tmp_path / "repo", "aws", STACK)
    image = ec2.describe_images(Filters=[{"Name": "architecture", "Values": ["x86_64"]}])["Images"][0]
    bucket = f"stackyard-{uuid.uuid4().hex[:12]}"
    made = Cloud(repo=repo, bucket=bucket, ec2=ec2, s3=s3)
    made.data.write_text(_DATA.format(region=REGION, image=image["ImageId"], bucket=bucket))
    repo.commit("data")
    settings = mirror(tmp_path, AWS)
    repo.env |= {"STACKYARD_TOFU_CONFIG": str(settings), "AWS_ENDPOINT_URL": url, **_KEYS}
    yield made
    ec2.close()
    s3.close()


def test_instances_a_network_and_a_bucket_are_made_once_and_leave_only_when_they_are_named(
    cloud: Cloud,
) -> None:
    repo = cloud.repo
    target = f"stack:{STACK}"
    applied = repo.json("apply", target)
    repo.commit("lock file")
    assert applied["applied"] == {"add": 19, "change": 0, "remove": 0}
    repo.run("plan", target, "--detailed-exitcode")

    outputs = json.loads(repo.run("output", target, "--raw", "instances").stdout)
    web, db = (cloud.instance(outputs[name]["id"]) for name in ("web", "db"))
    assert outputs["web"]["public_ip"] == web["PublicIpAddress"]
    assert outputs["db"]["private_ip"] == db["PrivateIpAddress"]
    assert outputs["db"]["public_ip"] is None
    assert web["MetadataOptions"]["HttpTokens"] == "required"
    tags = {one["Key"]: one["Value"] for one in db["Tags"]}
    assert tags == {"Name": "db", "managed-by": "stackyard"}
    (disk,) = db["BlockDeviceMappings"]
    (volume,) = cloud.ec2.describe_volumes(VolumeIds=[disk["Ebs"]["VolumeId"]])["Volumes"]
    assert (volume["Encrypted"], volume["Size"]) == (True, 20)
    (group,) = cloud.ec2.describe_security_groups(GroupIds=[web["SecurityGroups"][0]["GroupId"]])[
        "SecurityGroups"
    ]
    assert [(rule["FromPort"], rule["ToPort"]) for rule in group["IpPermissions"]] == [(443, 443)]
    block = cloud.s3.get_public_access_block(Bucket=cloud.bucket)["PublicAccessBlockConfiguration"]
    assert set(block.values()) == {True}
    assert cloud.s3.get_bucket_versioning(Bucket=cloud.bucket)["Status"] == "Enabled"

    hosts = json.loads(ansible_inventory(repo.root, ".stackyard/inventory.d"))
    assert hosts["_meta"]["hostvars"]["web"] == {
        "ansible_host": web["PublicIpAddress"],
        "ansible_user": "admin",
        "aws_instance_id": web["InstanceId"],
    }
    assert hosts["_meta"]["hostvars"]["db"]["ansible_host"] == db["PrivateIpAddress"]
    assert (hosts["aws"]["hosts"], hosts["frontend"]["hosts"]) == (["db", "web"], ["web"])

    # What leaves the data file, or is destroyed, has to be named.
    cloud.data.write_text(cloud.data.read_text().replace("  db = {", "  # db = {"))
    repo.commit("without the database")
    refused = repo.json("apply", target, status=1)["error"]
    assert refused["code"] == "E-GUARD-REFUSED"
    assert 'module.instance["db"].aws_instance.this' in refused["remedy"]
    addresses = [change["address"] for change in applied["changes"]]
    repo.run("destroy", target, "--allow-destroy", ",".join(addresses[1:]), status=1)
    assert cloud.instance(db["InstanceId"])["State"]["Name"] == "running"
    gone = repo.json("destroy", target, "--allow-destroy", ",".join(addresses))
    assert gone["applied"]["remove"] == 19
    assert cloud.instance(db["InstanceId"])["State"]["Name"] == "terminated"
