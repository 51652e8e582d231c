"""The modules and stacks of the recipes: their form, their README, and what their variables refuse."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.support.engine import real_engine
from tests.support.recipes import RECIPES

from stackyard.engine.version import Flavour
from stackyard.sources.stacks.hcl import parse_hcl
from stackyard.sources.stacks.tfvars import read_tfvars

MODULES = (
    "aws_ec2_instance",
    "aws_network",
    "aws_s3_bucket",
    "flux_bootstrap",
    "oci_instance",
    "proxmox_lxc_container",
    "proxmox_qemu_vm",
    "resource_groups",
    "resource_normalizer",
    "talos_cluster",
)
STACKS = ("aws", "empty", "flux", "oci", "proxmox", "talos")
CODE = sorted(
    path
    for folder in (*(f"modules/{one}" for one in MODULES), *(f"stacks/{one}" for one in STACKS))
    for path in (RECIPES / folder).glob("*.tf")
)

_ROW = re.compile(r"^\| `([a-z0-9_]+)` \| ([^|]+) \|", re.MULTILINE)
_VERSION = re.compile(r'^ +version *= "([^"]*)"', re.MULTILINE)


@pytest.mark.tofu
def test_opentofu_would_format_no_file_otherwise() -> None:
    tofu = real_engine(Flavour.TOFU).path
    said = subprocess.run(
        [tofu, "fmt", "-check", "-diff", "-recursive", "-no-color", RECIPES],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (said.returncode, said.stdout) == (0, ""), said.stderr


@pytest.mark.parametrize("path", CODE, ids=lambda path: str(path.relative_to(RECIPES)))
def test_a_file_is_read_whole_by_the_reader_of_stacks(path: Path) -> None:
    said = parse_hcl(path.read_bytes())
    assert said.problem is None
    for name, variable in said.variables.items():
        assert variable.type not in (None, "any"), name
    pins = _VERSION.findall(path.read_text())
    assert [pin for pin in pins if not pin.startswith("~> ")] == []


@pytest.mark.parametrize("name", MODULES)
def test_the_readme_of_a_module_has_a_row_for_each_input_and_output_and_no_other(name: str) -> None:
    folder = RECIPES / "modules" / name
    code = [parse_hcl(path.read_bytes()) for path in sorted(folder.glob("*.tf"))]
    readme = (folder / "README.md").read_text()
    _, _, tables = readme.partition("## Inputs")
    inputs, _, outputs = tables.partition("## Outputs")
    assert sorted(row[1] for row in _ROW.finditer(inputs)) == sorted(v for one in code for v in one.variables)
    assert sorted(row[1] for row in _ROW.finditer(outputs)) == sorted(o for one in code for o in one.outputs)
    for kind, table in (("variables", inputs), ("outputs", outputs)):
        text = (folder / f"{kind}.tf").read_text()
        written = re.findall(r'^  description *= "(.*)"$', text, re.MULTILINE)
        assert [row[2].removesuffix(" Sensitive.") for row in _ROW.finditer(table)] == written


@pytest.mark.parametrize("name", STACKS)
def test_a_stack_calls_modules_that_are_there_and_sets_only_variables_that_it_has(name: str) -> None:
    folder = RECIPES / "stacks" / name
    code = [parse_hcl(path.read_bytes()) for path in sorted(folder.glob("*.tf"))]
    sources = re.findall(r'^ +source += "(\.[^"]*)"', (folder / "main.tf").read_text(), re.MULTILINE)
    assert (sources == []) is (name == "empty")
    for source in sources:
        # As seen from `stacks/GROUP/NAME`, beside `modules`.
        assert source.startswith("../../../modules/")
        assert (RECIPES / "modules" / source.removeprefix("../../../modules/")).is_dir()
    declared = {variable for one in code for variable in one.variables}
    for path in folder.glob("*.tfvars"):
        assert set(read_tfvars(path.read_bytes(), path.name).variables) <= declared


def checked(folder: Path, recipe: str, values: str = "") -> str:
    """Plan the variables of a recipe alone, which needs no provider; return what the engine says."""
    shutil.copy(RECIPES / recipe / "variables.tf", folder)
    (folder / "more.auto.tfvars").write_text(values)
    said = subprocess.run(
        [real_engine(Flavour.TOFU).path, "plan", "-input=false", "-no-color", "-compact-warnings"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    words = " ".join((said.stdout + said.stderr).split())
    assert (said.returncode == 0) is ("No changes." in words), words
    return words


# Values that are refused, and what is said about each.
REFUSED = {
    "aws-references": (
        "stacks/aws",
        """
        region   = "eu-central-1"
        networks = { main = { cidr = "10.20.0.0/16" }, lone = { cidr = "10.30.0.0/16" } }
        subnets = {
          a = { network = "main", cidr = "10.20.1.0/24" }
          c = { network = "man", cidr = "10.20.3.0/24" }
          d = { network = "main", cidr = "10.21.0.0/24" }
        }
        """,
        (
            'subnets["c"].network is "man", which is not in networks.',
            'subnets["d"].cidr is "10.21.0.0/24", which is not a range inside networks["main"].cidr.',
            'networks["lone"] has no subnet.',
        ),
    ),
    "aws-instances": (
        "stacks/aws",
        """
        region   = "eu-central-1"
        networks = { main = { cidr = "10.20.0.0/16" } }
        subnets  = { back = { network = "main", cidr = "10.20.1.0/24" } }
        instances = {
          web = { subnet = "front", ami_id = "ami-1" }
          x = { subnet = "back", ami_id = "ami-1", private_ip = "10.20.1.9", public_ip = true }
          y = {
            subnet = "back", ami_id = "ami-1", private_ip = "10.20.1.9"
            key_name = "k", ssh_public_key = "ssh-rsa A"
          }
        }
        """,
        (
            'instances["web"].subnet is "front", which is not in subnets.',
            'instances["x"].public_ip is true, but subnets["back"] is not public.',
            'instances["x"].private_ip is "10.20.1.9", which another instance has too.',
            'instances["y"].private_ip is "10.20.1.9", which another instance has too.',
            'instances["y"] has both ssh_public_key and key_name',
        ),
    ),
    "aws-subnet-twice": (
        "stacks/aws",
        """
        region   = "eu-central-1"
        networks = { main = { cidr = "10.20.0.0/16" } }
        subnets = {
          a = { network = "main", cidr = "10.20.1.0/24" }
          b = { network = "main", cidr = "10.20.1.0/24" }
        }
        """,
        ('subnets["b"].cidr is "10.20.1.0/24", which another subnet of networks["main"] has too.',),
    ),
    "aws-empty": (
        "stacks/aws",
        'region = "eu-central-1"\nnetworks = {}\nsubnets = {}\ninstances = {}\n',
        ("networks is an empty map. Leave it out if this stack has no network.",),
    ),
    "aws-nothing": (
        "stacks/aws",
        'region = "eu-central-1"\n',
        ("The stack has neither networks nor buckets",),
    ),
    "aws-no-instances": (
        "stacks/aws",
        'region = "eu-central-1"\nbuckets = { some-bucket = {} }\ninstances = {}\n',
        ("instances is an empty map.",),
    ),
    "aws-instance": (
        "modules/aws_ec2_instance",
        """
        name                  = "web"
        ami_id                = "debian-13"
        subnet_id             = "subnet-1"
        create_security_group = false
        ingress               = { ssh = { from_port = 22, cidr = "10.0.0.0/8" } }
        ssh_public_key        = "-----BEGIN OPENSSH PRIVATE KEY-----"
        key_name              = "mine"
        """,
        (
            'ami_id is "debian-13", which is not the ID of an image',
            "ingress has rules, but create_security_group is false",
            "ssh_public_key is not a public SSH key",
        ),
    ),
    "aws-instance-without-a-vpc": (
        "modules/aws_ec2_instance",
        """
        name           = "web"
        ami_id         = "ami-1"
        subnet_id      = "subnet-1"
        ingress        = { all = { cidr = "any", protocol = "-1" }, ssh = { cidr = "10.0.0.0/8" } }
        ssh_public_key = "ssh-ed25519 A"
        key_name       = "mine"
        """,
        (
            "vpc_id is missing",
            'ingress["all"] needs a range of addresses as cidr',
            'ingress["ssh"] needs a range of addresses as cidr, and from_port',
            "Both key_name and ssh_public_key are set",
        ),
    ),
    "oci-instances": (
        "stacks/oci",
        """
        region         = "eu-frankfurt-1"
        compartment_id = "ocid1.compartment.oc1..a"
        subnets        = { front = "ocid1.subnet.oc1..a" }
        instances = {
          a = { subnet = "back", availability_domain = "x", image_id = "ocid1.image.a", ssh_public_keys = [] }
        }
        """,
        (
            'instances["a"].subnet is "back", which is not in subnets.',
            'instances["a"].shape is "VM.Standard.A1.Flex": a flexible shape needs shape_config',
            'instances["a"].ssh_public_keys is empty',
        ),
    ),
    "oci-empty": (
        "stacks/oci",
        """
        region         = "eu-frankfurt-1"
        compartment_id = "ocid1.compartment.oc1..a"
        subnets        = { front = "ocid1.subnet.oc1..a" }
        instances      = {}
        """,
        ("instances is an empty map",),
    ),
    "oci-subnets": (
        "stacks/oci",
        """
        region         = "eu-frankfurt-1"
        compartment_id = "ocid1.compartment.oc1..a"
        subnets        = { front = "ocid1.subnet.oc1..a", back = "ocid1.subnet.oc1..a", lan = "10.0.0.0/24" }
        instances      = {}
        """,
        (
            'subnets["back"] is "ocid1.subnet.oc1..a", which another subnet is too.',
            'subnets["lan"] is "10.0.0.0/24", which is not the OCID of a subnet.',
        ),
    ),
    "talos-nodes": (
        "modules/talos_cluster",
        """
        cluster_name  = "prod"
        talos_version = "v1.11.5"
        kubernetes_version = "latest"
        gateway       = "10.0.0.1"
        nameservers   = ["10.0.0.1"]
        nodes = {
          a = { role = "controlplane", node_name = "pve1", vm_id = 801, address = "10.0.0.11/24" }
          b = { role = "controlplane", node_name = "pve1", vm_id = 801, address = "10.0.0.11/24" }
          c = { role = "wroker", node_name = "pve1", vm_id = 803, address = "10.0.0.13" }
        }
        """,
        (
            'nodes["c"].role is "wroker", which is neither controlplane nor worker.',
            "nodes has 2 control planes: etcd needs an odd number.",
            'nodes["c"].address is "10.0.0.13", which is not an address with a prefix',
            'nodes["b"].address is "10.0.0.11/24", which another node has too.',
            'nodes["b"].vm_id is 801, which another node has too.',
            'talos_version is "v1.11.5"',
            'kubernetes_version is "latest"',
        ),
    ),
    "flux-repository": (
        "stacks/flux",
        """
        kubernetes = { host = "h", cluster_ca_certificate = "a", client_certificate = "c", client_key = "k" }
        git_url    = "ssh://git@example.org/home/cluster.git"
        git_token  = ""
        path       = "clusters/prod"
        age_key    = "k"
        """,
        ('git_url is "ssh://git@example.org/home/cluster.git"', "git_token is empty"),
    ),
    "flux-without-a-key": (
        "modules/flux_bootstrap",
        'path = "clusters/prod"\nage_key = ""\nage_key_revision = 0\n',
        ("age_key holds no private age key", "age_key_revision is 0"),
    ),
    "flux-with-a-public-key": (
        "modules/flux_bootstrap",
        'path = "clusters/prod"\nage_key = "# public key: age1zl8"\n',
        ("age_key holds no private age key",),
    ),
}


@pytest.mark.tofu
@pytest.mark.parametrize("case", REFUSED)
def test_a_wrong_value_is_refused_with_its_address(case: str, tmp_path: Path) -> None:
    recipe, values, expected = REFUSED[case]
    words = checked(tmp_path, recipe, values)
    assert [one for one in expected if one not in words] == [], words


@pytest.mark.tofu
@pytest.mark.parametrize("recipe", ["aws", "oci", "talos"])
def test_the_data_file_of_a_stack_is_accepted_as_it_is(recipe: str, tmp_path: Path) -> None:
    (data,) = (RECIPES / "stacks" / recipe).glob("*.tfvars")
    assert "No changes." in checked(tmp_path, f"stacks/{recipe}", data.read_text())


@pytest.mark.tofu
def test_a_key_file_of_age_is_accepted_with_its_comments(tmp_path: Path) -> None:
    key = f"# created: 2026-01-01\\n# public key: age1zl8\\nAGE-SECRET-KEY-1{'Q' * 58}\\n"
    assert "No changes." in checked(
        tmp_path, "modules/flux_bootstrap", f'path = "clusters/prod"\nage_key = "{key}"\n'
    )
