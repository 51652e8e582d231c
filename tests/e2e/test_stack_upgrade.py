"""Newer versions of providers and modules: reported and written with real OpenTofu and registries."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.engine import real_engine
from tests.support.registries import PLATFORMS, Registries, fill_mirror, serve_registries
from tests.support.stack_repo import StackRepo, make_repo

from stackyard.engine.version import Flavour

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

VERSIONS = ("1.0.0", "1.0.4", "1.3.2", "1.4.0-beta1", "2.0.0", "2.1.0")
ADDRESS = "registry.opentofu.org/acme/thing"


@pytest.fixture
def registries(tmp_path: Path) -> Iterator[Registries]:
    folder = tmp_path / "registries"
    folder.mkdir()
    with serve_registries(folder) as found:
        found.providers["acme/thing"] = VERSIONS
        yield found


def code(constraint: str = "~> 1.0", name: str = "thing", extra: str = "") -> str:
    return (
        "terraform {\n  required_providers {\n"
        f'    {name} = {{\n      source  = "acme/{name}" # ours\n'
        f'      version = "{constraint}" // why\n    }}\n'
        f"  }}\n}}\n{extra}"
    )


def make(
    folder: Path, registries: Registries, files: dict[str, str], settings: str | None = None
) -> StackRepo:
    """Make a repository whose engine asks the test's own registry."""
    rc = folder / "tofurc"
    rc.write_text(settings if settings is not None else own_registry(registries))
    env = {**registries.environment, "TF_CLI_CONFIG_FILE": str(rc), "NO_PROXY": "localhost"}
    return make_repo(folder / "repo", files, env=env)


def own_registry(registries: Registries) -> str:
    return (
        'host "registry.opentofu.org" {\n  services = {\n'
        f'    "providers.v1" = "https://{registries.host}/providers/"\n'
        f'    "modules.v1"   = "https://{registries.host}/modules/v1/"\n  }}\n}}\n'
    )


def init(repo: StackRepo, stack: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Let OpenTofu judge what was written; where it would write another lock file, it does."""
    return subprocess.run(
        [real_engine(Flavour.TOFU).path, "init", "-no-color", "-backend=false"],
        cwd=repo.root / "stacks" / stack,
        env={
            **repo.env,
            "TF_DATA_DIR": str(folder / f"data-{stack}"),
            "HOME": str(folder),
            "PATH": "/usr/bin:/bin",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def lock_text(version: str, constraint: str = "~> 1.0") -> str:
    return (
        f'provider "{ADDRESS}" {{\n  version     = "{version}"\n  constraints = "{constraint}"\n'
        '  hashes = [\n    "h1:bm90aGluZyBhdCBhbGwsIG5vdCBldmVuIGEgaGFzaCE=",\n  ]\n}\n'
    )


def test_the_report_shows_what_is_newer_and_what_the_constraint_allows(
    tmp_path: Path, registries: Registries
) -> None:
    registries.modules["acme/vm/proxmox"] = ("1.2.3", "1.2.9", "3.0.0")
    module = 'module "vm" {\n  source  = "acme/vm/proxmox//small"\n  version = "1.2.3"\n}\n'
    files = {
        "stacks/a/main.tf": code(extra=module),
        "stacks/a/.terraform.lock.hcl": lock_text("1.0.0"),
        "stacks/b/main.tf": code("~> 2.1"),
        "stacks/b/.terraform.lock.hcl": lock_text("2.1.0", "~> 2.1"),
    }
    repo = make(tmp_path, registries, files)
    found = repo.json("stack", "upgrade", "--detailed-exitcode", status=2)
    rows = {(row["stack"], row["name"]): row for row in found["rows"]}
    assert (found["newer"], found["unknown"]) == (2, 0)
    first = rows["a", "acme/thing"]
    assert first["constraints"] == [{"text": "~> 1.0", "file": "stacks/a/main.tf", "line": 5}]
    keys = ("locked", "allowed", "patch", "minor", "major", "newest")
    assert [first[key] for key in keys] == ["1.0.0", "1.3.2", "1.0.4", "1.3.2", "2.1.0", "2.1.0"]
    assert [rows["b", "acme/thing"][key] for key in keys] == ["2.1.0", "2.1.0", None, None, None, "2.1.0"]
    module_row = rows["a", "acme/vm/proxmox"]
    assert [module_row[key] for key in ("kind", "current", "patch", "minor", "major")] == [
        "module",
        "1.2.3",
        "1.2.9",
        None,
        "3.0.0",
    ]
    assert registries.asked.count("/providers/acme/thing/versions") == 1
    text = repo.run("stack", "upgrade", "a", "--only", "thing").stdout
    assert "~> 1.0 (stacks/a/main.tf:5)" in text
    assert "1 of 1 have a newer version; the versions of 0 are not known." in text
    table = repo.run("stack", "upgrade", "--format", "markdown").stdout
    assert (
        "| a | acme/thing | \\~\\> 1.0 (stacks/a/main.tf:5) | 1.0.0 | 1.3.2 | 1.0.4 | 1.3.2 | 2.1.0 |"
        in table
    )


def test_writing_raises_constraints_and_locks_for_all_platforms(
    tmp_path: Path, registries: Registries
) -> None:
    files = {
        "stacks/a/main.tf": code(),
        "stacks/a/.terraform.lock.hcl": lock_text("1.0.0"),
        "stacks/b/main.tf.json": '{"terraform": {"required_providers": '
        '{"thing": {"source": "acme/thing", "version": "~> 1.0.0"}}}}\n',
    }
    repo = make(tmp_path, registries, files)
    found = repo.json("stack", "upgrade", "--write")
    assert [(one["stacks"], one["status"]) for one in found["written"]] == [
        (["a"], "written"),
        (["b"], "written"),
    ]
    assert [(one["stack"], one["version"]) for one in found["held"]] == []
    assert (repo.root / "stacks/a/main.tf").read_text() == code("~> 1.3")
    assert '"version": "~> 1.3.2"' in (repo.root / "stacks/b/main.tf.json").read_text()
    for name in "ab":
        lock = (repo.root / "stacks" / name / ".terraform.lock.hcl").read_text()
        assert 'version     = "1.3.2"' in lock
        assert lock.count('"h1:') == lock.count('"zh:') == len(PLATFORMS)
        judged = init(repo, name, tmp_path)
        assert judged.returncode == 0, judged.stdout
        assert (repo.root / "stacks" / name / ".terraform.lock.hcl").read_text() == lock
    # Each package is downloaded once, however many stacks use it.
    archives = [one for one in registries.asked if one.startswith("/archive/thing/1.3.2/darwin")]
    assert len(archives) == 1
    again = repo.run("stack", "upgrade", "--write").stdout
    assert "There is nothing to write." in again


@pytest.mark.parametrize("kind", ["network", "oci", "packed", "unpacked"])
def test_mirrors_are_asked_and_locked_from(kind: str, tmp_path: Path, registries: Registries) -> None:
    mirror = tmp_path / "mirror"
    registries.needs_oci_token, registries.page = True, 2
    if "packed" in kind:
        fill_mirror(mirror, ADDRESS, VERSIONS, is_packed=kind == "packed")
    method = {
        "network": f'network_mirror {{\n    url = "{registries.url}"\n',
        "oci": f'oci_mirror {{\n    repository_template = "{registries.host}/${{namespace}}/${{type}}"\n'
        '    include = ["*/*"]\n',
    }.get(kind, f'filesystem_mirror {{\n    path = "{mirror}"\n')
    repo = make(
        tmp_path,
        registries,
        {"stacks/a/main.tf": code(), "stacks/a/.terraform.lock.hcl": lock_text("1.0.0")},
        f"provider_installation {{\n  {method}  }}\n}}\n",
    )
    row = repo.json("stack", "upgrade")["rows"][0]
    assert [row[key] for key in ("locked", "patch", "minor", "major")] == ["1.0.0", "1.0.4", "1.3.2", "2.1.0"]
    word = {"network": "network mirror", "oci": "OCI registry"}.get(kind, "filesystem mirror")
    assert row["source"].startswith(word)
    repo.run("stack", "upgrade", "--write")
    lock = (repo.root / "stacks/a/.terraform.lock.hcl").read_text()
    assert 'version     = "1.3.2"\n  constraints = "~> 1.3"' in lock
    assert lock.count('"zh:' if kind == "oci" else '"h1:') == len(PLATFORMS)
    judged = init(repo, "a", tmp_path)
    assert judged.returncode == 0, judged.stdout
    assert (repo.root / "stacks/a/.terraform.lock.hcl").read_text() == lock


def test_a_stack_that_cannot_be_locked_is_as_it_was_and_the_others_are_written(
    tmp_path: Path, registries: Registries
) -> None:
    registries.providers["acme/other"] = ("1.0.0", "1.1.0")
    registries.answers["/archive/other/1.1.0/darwin_arm64"] = (404, b"", {})
    files = {"stacks/a/main.tf": code(), "stacks/b/main.tf": code(name="other")}
    repo = make(tmp_path, registries, files)
    found = repo.json("stack", "upgrade", "--write", status=1)
    assert [(one["stacks"], one["status"]) for one in found["written"]] == [
        (["a"], "written"),
        (["b"], "failed"),
    ]
    assert repo.git("status", "--short", "--untracked-files=all").splitlines() == [
        "M stacks/a/main.tf",
        "?? stacks/a/.terraform.lock.hcl",
    ]
    assert "acme/other" in str(found["written"][1]["error"])


def test_offline_the_report_says_what_is_not_known(tmp_path: Path, registries: Registries) -> None:
    folder = tmp_path / "mirror"
    fill_mirror(folder, "registry.opentofu.org/acme/other", ["1.0.0", "1.1.0"])
    settings = (
        'host "registry.opentofu.org" {\n  services = {\n    "providers.v1" = "https://localhost:1/"\n'
        "  }\n}\n"
        "provider_installation {\n"
        f'  filesystem_mirror {{\n    path = "{folder}"\n    include = ["acme/other"]\n  }}\n'
        '  direct {\n    exclude = ["acme/other"]\n  }\n}\n'
    )
    files = {"stacks/a/main.tf": code(), "stacks/b/main.tf": code(name="other")}
    repo = make(tmp_path, registries, files, settings)
    found = repo.json("stack", "upgrade")
    rows = {row["stack"]: row for row in found["rows"]}
    assert rows["a"]["problem"] == "cannot connect to localhost:1: Connection refused"
    assert rows["b"]["minor"] == "1.1.0"
    assert found["unknown"] == 1
    text = repo.run("stack", "upgrade").stdout
    assert "stack:a: acme/thing: not known: cannot connect to localhost:1: Connection refused" in text
    repo.run("stack", "upgrade", "--write", status=1)
    assert (repo.root / "stacks/a/main.tf").read_text() == code()
    assert (repo.root / "stacks/b/main.tf").read_text() == code("~> 1.1", "other")


def test_a_constraint_of_a_shared_module_is_raised_only_for_all_its_stacks(
    tmp_path: Path, registries: Registries
) -> None:
    call = 'module "m" {\n  source = "../../modules/m"\n}\n'
    files = {f"stacks/{name}/main.tf": call for name in "ab"} | {"modules/m/main.tf": code("~> 1.0.0")}
    repo = make(tmp_path, registries, files)
    alone = repo.json("stack", "upgrade", "a", "--write")
    assert alone["held"][0]["reason"] == (
        "modules/m/main.tf:5: `~> 1.0.0` also holds for stack:b: select all of them"
    )
    assert (repo.root / "modules/m/main.tf").read_text() == code("~> 1.0.0")
    # What the constraint allows is taken.
    assert 'version     = "1.0.4"' in (repo.root / "stacks/a/.terraform.lock.hcl").read_text()
    found = repo.json("stack", "upgrade", "--all", "--write")
    assert [one["stacks"] for one in found["written"]] == [["a", "b"]]
    assert (repo.root / "modules/m/main.tf").read_text() == code("~> 1.3.2")
    for name in "ab":
        assert init(repo, name, tmp_path).returncode == 0


def test_modules_are_raised_and_what_they_require_is_respected(
    tmp_path: Path, registries: Registries
) -> None:
    registries.modules["acme/vm/proxmox"] = ("1.2.3", "1.4.0")
    registries.module_code["acme/vm/proxmox/1.4.0"] = code("< 1.3")
    call = 'module "vm" {\n  source  = "acme/vm/proxmox"\n  version = "1.2.3" # pinned\n}\n'
    repo = make(tmp_path, registries, {"stacks/a/main.tf": code(extra=call)})
    found = repo.json("stack", "upgrade", "--write", status=1)
    assert "`< 1.3`, which does not allow 1.3.2" in found["written"][0]["error"]["detail"]
    assert repo.git("status", "--short") == ""
    registries.module_code["acme/vm/proxmox/1.4.0"] = code(">= 1.2, < 2.0")
    repo.run("stack", "upgrade", "--write")
    text = (repo.root / "stacks/a/main.tf").read_text()
    assert text == code("~> 1.3", extra=call.replace("1.2.3", "1.4.0"))
    lock = (repo.root / "stacks/a/.terraform.lock.hcl").read_text()
    judged = init(repo, "a", tmp_path)
    assert judged.returncode == 0, judged.stdout
    assert (repo.root / "stacks/a/.terraform.lock.hcl").read_text() == lock


def test_the_tag_of_a_module_in_an_oci_registry_is_raised(tmp_path: Path, registries: Registries) -> None:
    registries.oci_modules["acme/vm"] = ("1.0.0", "1.2.0", "2.0.0")
    call = f'module "vm" {{\n  source = "oci://{registries.host}/acme/vm?tag=1.0.0" # why\n}}\n'
    git = 'module "git" {\n  source = "git::https://git.test/vm.git?ref=v1.0.0"\n}\n'
    chosen = 'variable "from" {\n  type = string\n}\nmodule "chosen" {\n  source = var.from\n}\n'
    files = {"stacks/a/main.tf": call, "stacks/b/main.tf": git, "stacks/c/main.tf": chosen}
    repo = make(tmp_path, registries, files)
    found = repo.json("stack", "upgrade")
    assert [found["rows"][0][key] for key in ("current", "minor", "major")] == ["1.0.0", "1.2.0", "2.0.0"]
    assert found["rows"][1]["problem"] == "versions are looked up in registries, not for such a source"
    assert found["rows"][2]["problem"] == "only OpenTofu can compute where the module comes from"
    assert found["unknown"] == 0
    repo.run("stack", "upgrade", "--write")
    assert (repo.root / "stacks/a/main.tf").read_text() == call.replace("1.0.0", "1.2.0")
    judged = init(repo, "a", tmp_path)
    assert judged.returncode == 0, judged.stdout


def test_a_major_version_waits_until_a_stack_that_is_not_critical_was_applied_with_it(
    tmp_path: Path, registries: Registries
) -> None:
    def call(version: str, name: str = "vm") -> str:
        return f'module "m" {{\n  source  = "acme/{name}/proxmox"\n  version = "{version}"\n}}\n'

    for name in ("vm", "other"):
        registries.modules[f"acme/{name}/proxmox"] = ("1.0.0", "1.1.0", "2.0.0")
        for version in ("1.0.0", "1.1.0", "2.0.0"):
            text = f'resource "terraform_data" "x" {{\n  input = "{version}"\n}}\n'
            registries.module_code[f"acme/{name}/proxmox/{version}"] = text
    files = {
        "stacks/prod/main.tf": call("~> 1.0"),
        "stacks/sandbox/main.tf": call("~> 1.0"),
        "stacks/sandbox/stack.yaml": "critical: false\n",
        "stacks/alone/main.tf": call("1.0.0", "other"),
    }
    repo = make(tmp_path, registries, files)
    refused = repo.json("stack", "upgrade", "prod", "alone", "--write", "--major", status=1)
    assert {one["stack"]: one["reason"] for one in refused["held"]} == {
        "prod": "it is critical, and waits until stack:sandbox was applied with 2.x",
        "alone": "it is critical, and no stack with `critical: false` uses this to try the version first",
    }
    # Within the same major version, a critical stack is upgraded all the same.
    assert (repo.root / "stacks/prod/main.tf").read_text() == call("~> 1.1")
    assert (repo.root / "stacks/alone/main.tf").read_text() == call("1.1.0", "other")
    repo.run("stack", "upgrade", "sandbox", "--write", "--major")
    assert (repo.root / "stacks/sandbox/main.tf").read_text() == call("~> 2.0")
    repo.commit("try 2.x")
    assert repo.json("stack", "upgrade", "prod", "--write", "--major", status=1)["held"]
    repo.run("apply", "stack:sandbox", "--yes")
    assert repo.json("stack", "upgrade", "prod", "--write", "--major")["held"] == []
    assert (repo.root / "stacks/prod/main.tf").read_text() == call("~> 2.0")


def test_the_built_in_provider_is_said_to_be(tmp_path: Path, registries: Registries) -> None:
    text = code("~> 0.111", "proxmox").replace("acme/", "bpg/")
    repo = make(tmp_path, registries, {"stacks/a/main.tf": text})
    row = repo.json("stack", "upgrade")["rows"][0]
    assert (row["name"], row["built_in"], row["problem"]) == ("bpg/proxmox", "0.111.1", None)
    assert registries.asked == []
    assert "0.111.1 (built in)" in repo.run("stack", "upgrade").stdout


def test_a_token_is_sent_to_its_host_and_never_shown(tmp_path: Path, registries: Registries) -> None:
    registries.token = "s3cret-token-of-mine"
    source = code().replace("acme/thing", f"{registries.host}/acme/thing")
    settings = f'credentials "{registries.host}" {{\n  token = "{registries.token}"\n}}\n'
    repo = make(tmp_path, registries, {"stacks/a/main.tf": source}, settings)
    ended = repo.run("stack", "upgrade", "--json")
    assert ended.document["rows"][0]["minor"] == "1.3.2"
    assert registries.token not in ended.stdout + ended.stderr
    registries.token = "another"
    refused = repo.run("stack", "upgrade")
    assert "refuses the request (401): a login is needed" in refused.stdout
    assert "s3cret" not in refused.stdout + refused.stderr


def test_wrong_words_are_refused(tmp_path: Path, registries: Registries) -> None:
    repo = make(tmp_path, registries, {"stacks/a/main.tf": code()})
    for words in (
        ("--report", "--write"),
        ("--major",),
        ("a", "--all"),
        ("--write", "--platform", "linux"),
        ("--write", "--format", "markdown"),
        ("--only", "nothing"),
    ):
        assert repo.run("stack", "upgrade", *words, status=64).stdout == ""
    broken = tmp_path / "tofurc"
    broken.write_text("provider_installation {\n")
    assert "E-STACK-CLI-CONFIG" in repo.run("stack", "upgrade", "--json", status=65).stdout
