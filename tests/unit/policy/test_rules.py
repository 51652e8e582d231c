"""Each rule lets the good repository pass and finds what breaks it, with its place and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.policy import LOCK, MODULE, STACK, VAULT, check, good_repository, rules_of
from tests.support.stacks import git, write

from stackyard.policy.rules import RULES

PET = "modules/pet"
A = "stacks/onprem/a"
Files = dict[str, str | None]
KEY = (
    "-----BEGIN PRIVATE KEY-----\n" + "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ\n" * 2
)  # stackyard:allow-secret


def text(files: Files, name: str) -> str:
    found = files[name]
    assert found is not None
    return found


def call(source: str, version: str = "") -> str:
    more = f'\n  version = "{version}"' if version else ""
    return f'module "x" {{\n  source = "{source}"{more}\n}}\n'


def main(source: str, version: str = "") -> Files:
    return {f"{A}/main.tf": text(STACK, "main.tf") + call(source, version)}


def pinned(version: str) -> Files:
    return {f"{PET}/main.tf": text(MODULE, "main.tf").replace("~> 3.6", version)}


def variable(body: str) -> Files:
    return {f"{PET}/variables.tf": text(MODULE, "variables.tf").replace("type        = number", body)}


def output(body: str) -> Files:
    return {f"{PET}/outputs.tf": text(MODULE, "outputs.tf").replace("random_pet.this.id", body)}


def readme(old: str, new: str) -> Files:
    return {f"{PET}/README.md": text(MODULE, "README.md").replace(old, new)}


def second(key: str, more: Files | None = None) -> Files:
    files = {f"stacks/onprem/b/{name}": one for name, one in STACK.items()}
    files["stacks/onprem/b/backend.tf"] = text(STACK, "backend.tf").replace("onprem/a", key)
    return files | (more or {})


FAILING: dict[str, tuple[str, Files, str, str]] = {
    # name: rule, what is changed in the good repository, the place, a part of the words
    "M1 git": ("M1", main("git::https://example.org/vpc.git"), f"{A}/main.tf:6", "a git repository"),
    "M1 github": ("M1", main("github.com/org/vpc"), f"{A}/main.tf:6", "a git repository"),
    "M1 ssh": ("M1", main("git@example.org:org/vpc"), f"{A}/main.tf:6", "a git repository"),
    "M1 http": ("M1", main("https://example.org/vpc"), f"{A}/main.tf:6", "an HTTP address"),
    "M1 archive": ("M1", main("https://example.org/vpc.zip"), f"{A}/main.tf:6", "an archive"),
    "M1 s3": ("M1", main("s3::https://s3.amazonaws.com/b/vpc.zip"), f"{A}/main.tf:6", "a bucket"),
    "M1 gcs": ("M1", main("gcs::https://www.googleapis.com/storage/v1/b/vpc"), f"{A}/main.tf:6", "a bucket"),
    "M1 oci": ("M1", main("oci://example.org/vpc"), f"{A}/main.tf:6", "neither a path nor"),
    "M1 bare": ("M1", main("modules/pet"), f"{A}/main.tf:6", "neither a path nor"),
    "M1 out": ("M1", main("../../../../modules/pet"), f"{A}/main.tf:6", "out of the repository"),
    "M1 elsewhere": ("M1", main("./inner") | {f"{A}/inner/main.tf": ""}, f"{A}/main.tf:6", "no `modules/`"),
    "M1 gone": ("M1", main("../../../modules/gone"), f"{A}/main.tf:6", "there is no code"),
    "M1 absolute": ("M1", main("/modules/pet"), f"{A}/main.tf:6", "absolute"),
    "M1 computed": (
        "M1",
        {f"{A}/x.tf": 'module "x" {\n  source = local.where\n}\n'},
        f"{A}/x.tf:2",
        "missing or computed",
    ),
    "M1 JSON": (
        "M1",
        {f"{A}/x.tf.json": '{"module": {"x": {\n "source": "git::ssh://git@example.org/x"}}}'},
        f"{A}/x.tf.json:2",
        "a git repository",
    ),
    "M1 in a module": ("M1", {f"{PET}/x.tf": call("./inner")}, f"{PET}/x.tf:2", "there is no code"),
    "M2 none": ("M2", main("org/vpc/aws"), f"{A}/main.tf:5", "has no version"),
    "M2 exact": ("M2", main("org/vpc/aws", "5.1.0"), f"{A}/main.tf:7", "without `~>`"),
    "M2 wrong": ("M2", main("org/vpc/aws", "newest"), f"{A}/main.tf:7", "not valid"),
    "M2 local": ("M2", main("../../../modules/pet", "~> 1.0"), f"{A}/main.tf:7", "has a version"),
    "M3 exact": ("M3", pinned("3.6.2"), f"{PET}/main.tf:5", "without `~>`"),
    "M3 least": ("M3", pinned(">= 3.6"), f"{PET}/main.tf:5", "without `~>`"),
    "M3 none": (
        "M3",
        {f"{PET}/main.tf": text(MODULE, "main.tf").replace('version = "~> 3.6"', "")},
        f"{PET}/main.tf:3",
        "no version",
    ),
    "M3 unnamed": ("M3", {f"{PET}/x.tf": 'data "aws_ami" "x" {}\n'}, f"{PET}/x.tf:1", "required_providers"),
    "M3 no lock": ("M3", {f"{A}/.terraform.lock.hcl": None}, f"{A}/.terraform.lock.hcl", "no lock file"),
    "M3 not locked": (
        "M3",
        {f"{A}/.terraform.lock.hcl": "\n"},
        f"{A}/.terraform.lock.hcl:1",
        "not in the lock",
    ),
    "M3 locked otherwise": (
        "M3",
        {f"{A}/.terraform.lock.hcl": LOCK.replace("3.6.2", "2.9.0")},
        f"{A}/.terraform.lock.hcl:1",
        "does not fit",
    ),
    "M4 main": (
        "M4",
        {f"{PET}/main.tf": None, f"{PET}/pet.tf": text(MODULE, "main.tf")},
        PET,
        "has no main.tf",
    ),
    "M4 variables": ("M4", {f"{PET}/variables.tf": None}, PET, "has no variables.tf"),
    "M4 outputs": ("M4", {f"{PET}/outputs.tf": None}, PET, "has no outputs.tf"),
    "M4 README": ("M4", {f"{PET}/README.md": None}, PET, "has no README.md"),
    "M4 nested": ("M4", {"modules/platform/k/x.tf": ""}, "modules/platform/k", "has no main.tf"),
    "M5 description": (
        "M5",
        {f"{PET}/variables.tf": 'variable "length" {\n  type = number\n}\n'},
        f"{PET}/variables.tf:1",
        "no description",
    ),
    "M5 empty": (
        "M5",
        {f"{PET}/variables.tf": 'variable "length" {\n  type = number\n  description = " "\n}\n'},
        f"{PET}/variables.tf:1",
        "no description",
    ),
    "M5 type": ("M5", variable(""), f"{PET}/variables.tf:1", "no type"),
    "M5 any": ("M5", variable("type = any"), f"{PET}/variables.tf:3", "is `any`"),
    "M5 nested any": ("M5", variable("type = map(object({a = any}))"), f"{PET}/variables.tf:3", "holds it"),
    "M5 no reason": ("M5", variable("type = any # any:"), f"{PET}/variables.tf:3", "no reason"),
    "M5 stack": ("M5", {f"{A}/x.tf": 'variable "y" {\n  type = any\n}\n'}, f"{A}/x.tf:1", "no description"),
    "M6 none": ("M6", {f"{PET}/outputs.tf": ""}, PET, "has no outputs"),
    "M6 description": (
        "M6",
        {f"{PET}/outputs.tf": 'output "name" {\n  value = random_pet.this.id\n}\n'},
        f"{PET}/outputs.tf:1",
        "no description",
    ),
    "M6 other": ("M6", output("random_pet.this.length"), f"{PET}/main.tf:10", "No output"),
    "M7 missing": (
        "M7",
        readme("| `length` | How many words the name has. |\n", ""),
        f"{PET}/README.md:1",
        "no variable `length`",
    ),
    "M7 stale": ("M7", readme("`name`", "`nome`"), f"{PET}/README.md:15", "output `nome`"),
    "M7 in code": (
        "M7",
        readme("## Inputs", "```\n## Inputs\n```\n\n## Other"),
        f"{PET}/README.md:1",
        "`length`",
    ),
    "M8 main": ("M8", {f"{A}/main.tf": None}, A, "no code that makes something"),
    "M8 variables": ("M8", {f"{A}/variables.tf": None}, A, "has no variables"),
    "M8 backend": ("M8", {f"{A}/backend.tf": "# local state\n"}, A, "has no backend"),
    "M8 data": ("M8", {f"{A}/terraform.tfvars": None}, A, "no variables file"),
    "M8 secrets": ("M8", {f"{A}/secrets.tfvars": None}, A, "no secrets file"),
    "M8 providers": ("M8", {f"{A}/providers.tf": None}, A, "says nothing about its providers"),
    "M8 lock": ("M8", {f"{A}/.terraform.lock.hcl": None}, A, "no lock file"),
    "M9 same": ("M9", second("onprem/a"), f"{A}/backend.tf:2", "the same backend and key"),
    "M9 foreign": ("M9", second("cloud/b"), "stacks/onprem/b/backend.tf:2", "not below `onprem/`"),
    "M9 unknown": (
        "M9",
        {f"{A}/backend.tf": 'terraform {\n  backend "s3" {\n    bucket = "states"\n  }\n}\n'},
        f"{A}/backend.tf:2",
        "no constant `key`",
    ),
    "M10 state": ("M10", {f"{A}/terraform.tfstate": "{}"}, f"{A}/terraform.tfstate:1", "a state"),
    "M10 backup": ("M10", {"x.tfstate.backup": "{}"}, "x.tfstate.backup:1", "a state"),
    "M10 renamed state": (
        "M10",
        {"old.json": '{"version": 4, "terraform_version": "1.9.0", "serial": 1, "lineage": "x"}'},
        "old.json:1",
        "a state of OpenTofu",
    ),
    "M10 plan": ("M10", {f"{A}/x.tfplan": "x"}, f"{A}/x.tfplan:1", "a plan"),
    "M10 decrypted": (
        "M10",
        {f"{A}/x.decrypted.tfvars": "a = 1\n"},
        f"{A}/x.decrypted.tfvars:1",
        "decrypted",
    ),
    "M10 key": ("M10", {"k8s/certs/tls.key": KEY}, "k8s/certs/tls.key:1", "a private key"),
    "M10 environment": ("M10", {"app/.env": "A=1\n"}, "app/.env:1", "environment variables"),
    "M10 named environment": (
        "M10",
        {"app/x.env": "DB_PASSWORD=Tr0ub4dor\n"},
        "app/x.env:1",
        "`DB_PASSWORD`",
    ),
    "M10 secret": ("M10", {f"{A}/secrets.tfvars": "password = 1\n"}, f"{A}/secrets.tfvars:1", "in clear"),
    "M11 state": (
        "M11",
        second(
            "onprem/b",
            {
                "stacks/onprem/b/x.tf": 'data "terraform_remote_state" "a" {\n  backend = "s3"\n'
                '  config = { bucket = "states", key = "onprem/a.tfstate" }\n}\n'
            },
        ),
        "stacks/onprem/b/x.tf:1",
        "reads the state of `onprem/a`",
    ),
    "M11 file": (
        "M11",
        second(
            "onprem/b",
            {
                "stacks/onprem/b/x.tf": 'locals {\n  x = file("${path.module}/../a/hosts.txt")\n}\n',
                f"{A}/hosts.txt": "x\n",
            },
        ),
        "stacks/onprem/b/x.tf:2",
        "reads `stacks/onprem/a/hosts.txt`",
    ),
    "M0 broken": ("M0", {f"{PET}/x.tf": "locals {\n}\n}}}\n"}, f"{PET}/x.tf:3", "cannot be read"),
    "M0 settings": ("M0", {f"{A}/stack.yaml": "tag: [x]\n"}, f"{A}/stack.yaml:1", "not valid"),
}

PASSING: dict[str, tuple[str, Files]] = {
    "M1 registry": ("M1", main("org/vpc/aws", "~> 5.1")),
    "M1 other registry": ("M1", main("registry.example.org/org/vpc/aws", "~> 5.1")),
    "M1 folder in it": ("M1", main("org/vpc/aws//inner", "~> 5.1")),
    "M2 with more": ("M2", main("org/vpc/aws", "~> 5.1, != 5.1.3")),
    "M3 built in": ("M3", {f"{PET}/x.tf": 'resource "terraform_data" "x" {}\n'}),
    "M3 patch": ("M3", pinned("~> 3.6.1")),
    "M4 JSON": (
        "M4",
        {f"{PET}/outputs.tf": None, f"{PET}/outputs.tf.json": '{"output": {"name": {"value": "x"}}}'},
    ),
    "M4 tofu": ("M4", {f"{PET}/main.tf": None, f"{PET}/main.tofu": text(MODULE, "main.tf")}),
    "M4 tests": ("M4", {f"{PET}/tests/x.tf": "", f"{PET}/examples/one/x.tf": ""}),
    "M5 reason behind": ("M5", variable("type = any # any: the provider takes what it is given")),
    "M5 reason above": ("M5", variable("# any: a free form\n  type = map(any)")),
    "M5 reason inside": ("M5", variable("type = object({\n    a = any # any: free\n  })")),
    "M5 word": ("M5", variable("type = object({ many = string, company = string })")),
    "M5 JSON": (
        "M5",
        {
            f"{PET}/variables.tf": None,
            f"{PET}/variables.tf.json": '{"variable": {"length": {"//": "any: free", "type": "any", '
            '"description": "x"}}}',
        },
    ),
    "M6 whole": ("M6", output("random_pet.this")),
    "M6 each": ("M6", output("{ for k, v in random_pet.this : k => v.id }")),
    "M6 splat": ("M6", output("random_pet.this[*].id")),
    "M6 local": ("M6", output("local.x") | {f"{PET}/l.tf": "locals {\n  x = random_pet.this[0].id\n}\n"}),
    "M7 anchors": ("M7", readme("| `name` |", '| <a name="output_name"></a> [name](#output\\_name) |')),
    "M7 other table": ("M7", readme("Makes a name.", "| Provider | Version |\n|---|---|\n| `x` | 1 |\n")),
    "M8 roles": (
        "M8",
        {
            f"{A}/all.tf": "".join(text(STACK, name) for name in STACK if name.endswith(".tf")),
            f"{A}/vms.tfvars": "length = 1\n",
            f"{A}/vms.secret.tfvars": VAULT,
            **{f"{A}/{name}": None for name in STACK if name.endswith((".tf", ".tfvars"))},
        },
    ),
    "M8 no secrets": (
        "M8",
        {
            f"{A}/secrets.tfvars": None,
            f"{A}/variables.tf": 'variable "length" {\n  type = number\n  description = "x"\n}\n',
        },
    ),
    "M9 own keys": ("M9", second("onprem/b")),
    "M9 of the seed": (
        "M9",
        {f"{A}/backend.tf": text(STACK, "backend.tf").replace("onprem/a", "onprem/server_A")},
    ),
    "M10 example": ("M10", {".env.example": "A=1\n"}),
    "M11 declared": (
        "M11",
        second(
            "onprem/b",
            {
                "stacks/onprem/b/x.tf": 'locals {\n  x = file("${path.module}/../a/hosts.txt")\n}\n',
                "stacks/onprem/b/stack.yaml": "after: [onprem/a]\n",
                f"{A}/hosts.txt": "x\n",
            },
        ),
    ),
}


def test_every_rule_has_a_failing_and_a_passing_case() -> None:
    ids = [one.id for one in RULES]
    assert ids == [f"M{number}" for number in range(13)]
    # M12 compares commits: test_major_versions has its cases; the good repository passes the rest.
    assert {rule for rule, *_ in FAILING.values()} == {*ids} - {"M12"}
    assert all(one.title and one.why for one in RULES)


def test_a_good_repository_keeps_every_rule(tmp_path: Path) -> None:
    result = check(good_repository(tmp_path))
    assert result.findings == ()
    assert [one.rule for one in result.skipped] == ["M12"]
    assert (result.modules, result.stacks) == (1, 1)


@pytest.mark.parametrize("name", FAILING)
def test_a_rule_finds_what_breaks_it(tmp_path: Path, name: str) -> None:
    rule, changed, place, words = FAILING[name]
    result = check(good_repository(tmp_path, changed), rule)
    found = [one for one in result.errors if one.rule == rule and str(one.where) == place]
    assert found, [(str(one.where), one.detail) for one in result.findings]
    assert any(words in one.detail for one in found), found
    assert all(one.remedy for one in found)


@pytest.mark.parametrize("name", PASSING)
def test_a_rule_lets_pass_what_keeps_it(tmp_path: Path, name: str) -> None:
    rule, changed = PASSING[name]
    assert rules_of(check(good_repository(tmp_path, changed), rule)) - {"M0"} == set()


def test_a_broken_file_does_not_stop_the_others(tmp_path: Path) -> None:
    root = good_repository(tmp_path, {f"{PET}/main.tf": "resource {{{\n", "modules/other/x.tf": ""})
    found = {(one.rule, one.where.path) for one in check(root).errors}
    assert {("M0", f"{PET}/main.tf"), ("M4", "modules/other")} <= found


def test_a_module_is_judged_where_a_link_leads(tmp_path: Path) -> None:
    root = good_repository(tmp_path, {"lib/x/main.tf": "", f"{A}/main.tf": call("../../../modules/linked")})
    (root / "modules/linked").symlink_to("../lib/x")
    [found] = check(root, "M1").errors
    assert "leads to `lib/x`" in found.detail


def test_the_index_counts_and_not_the_working_tree(tmp_path: Path) -> None:
    root = good_repository(tmp_path, {f"{A}/secrets.tfvars": "password = 1\n"})
    write(root, {f"{A}/secrets.tfvars": VAULT})
    assert rules_of(check(root, "M10")) == {"M10"}
    git(root, "add", "--all")
    assert rules_of(check(root, "M10")) == set()
    write(root, {f"{A}/secrets.tfvars": "password = 1\n"})
    assert rules_of(check(root, "M10")) == set()


def test_the_built_in_provider_is_in_no_lock_file(tmp_path: Path) -> None:
    providers = text(STACK, "providers.tf").replace("hashicorp/random", "bpg/proxmox")
    changed = {f"{A}/providers.tf": providers.replace("random", "proxmox").replace("~> 3.6", "~> 0.66")}
    assert rules_of(check(good_repository(tmp_path / "a", changed), "M3,M8")) == set()
    bpg: Files = {**changed, f"{A}/stack.yaml": "provider: bpg\n"}
    result = check(good_repository(tmp_path / "b", bpg), "M3")
    assert "bpg/proxmox" in result.errors[0].detail


def test_outside_of_git_tracked_files_are_not_checked(tmp_path: Path) -> None:
    write(tmp_path, {"stackyard.yaml": "policy: []\n"})
    write(tmp_path, {f"{PET}/{name}": one for name, one in MODULE.items()})
    result = check(tmp_path)
    assert result.errors == ()
    assert {one.rule for one in result.skipped} == {"M10", "M12"}


def test_a_file_that_gitattributes_allows_is_no_finding(tmp_path: Path) -> None:
    files = {"tests/old.tfstate": "{}", ".gitattributes": "tests/*.tfstate stackyard-allow-secret\n"}
    assert rules_of(check(good_repository(tmp_path, files), "M10")) == set()
