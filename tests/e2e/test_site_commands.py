"""`stackyard site`, `explain` and `spec` as a user runs them."""

from __future__ import annotations

import stat
from pathlib import Path

import orjson
import pytest
from tests.support.cli import Ended, stackyard
from tests.support.site import FULL, HASH, SEED, TOKEN, write_site

from stackyard.secrets import create_sops_file, new_identity

SECRET_PARTS = (TOKEN, TOKEN.partition("=")[2], HASH, "site-token-value", "node-token-of-test")
# Sites of the developer's own machine are none of the tests' business.
ENV = {"HOMESTAK_SITE_CONFIG": ""}


def run(*arguments: str, cwd: Path) -> Ended:
    return stackyard(*arguments, cwd=cwd, env=ENV)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return write_site(tmp_path / "site")


def test_a_valid_site_is_called_valid(site: Path) -> None:
    ended = run("site", "validate", cwd=site)
    assert (ended.status, ended.stderr) == (0, "")
    assert "is valid" in ended.stdout
    document = run("site", "validate", "--json", cwd=site).document
    assert document["counts"]["nodes"] == 2
    assert document["warnings"] == []


def test_every_problem_is_shown_with_its_place_and_status_65(site: Path) -> None:
    write_site(site, envs__dev="posture: dve\nvms:\n  - {name: test, template: tset, coers: 1}\n")
    (site / "nodes" / "pve.yaml").write_text("api_endpoint: x\n")
    ended = run("site", "validate", cwd=site)
    assert ended.status == 65
    assert ended.stdout == ""
    for place in ("envs/dev.yaml:3:34", "nodes/pve.yaml:1:15", "nodes/pve.yaml:1:1"):
        assert place in ended.stderr
    assert "Did you mean `cores`" in ended.stderr
    machine = run("site", "validate", "--json", cwd=site)
    assert machine.status == 65
    found = machine.document["error"]["diagnostics"]
    assert {"file": "envs/dev.yaml", "line": 3, "column": 34} in [one["where"] for one in found]
    assert all(one["remedy"] and one["detail"] for one in found)


def test_a_site_is_found_from_a_folder_inside_it_and_by_its_name(site: Path, tmp_path: Path) -> None:
    assert run("site", "list", "envs", cwd=site / "vms" / "presets").stdout == "dev\n"
    assert run("site", "list", "envs", "--site", str(site), cwd=tmp_path).stdout == "dev\n"
    assert (
        stackyard("site", "list", "envs", cwd=tmp_path, env={"STACKYARD_SITE": str(site)}).stdout == "dev\n"
    )
    assert (
        stackyard("site", "list", "envs", cwd=tmp_path, env={"HOMESTAK_SITE_CONFIG": str(site)}).stdout
        == "dev\n"
    )


def test_a_place_that_is_named_and_not_there_is_an_error_even_inside_a_site(site: Path) -> None:
    ended = run("site", "list", "--site", "nowhere", cwd=site)
    assert ended.status == 65
    assert "E-SITE-NOT-FOUND" in ended.stderr


def test_everything_is_listed_even_where_files_are_wrong(site: Path) -> None:
    (site / "envs" / "broken.yaml").write_text("vms: [\n")
    document = run("site", "list", "--json", cwd=site).document
    assert document["envs"] == ["broken", "dev"]
    assert document["postures"] == ["dev", "prod", "stage"]


def test_a_schema_is_the_published_one(site: Path) -> None:
    printed = orjson.loads(run("site", "schema", "env", cwd=site).stdout)
    root = Path(__file__).parents[2]
    assert printed == orjson.loads((root / "docs" / "reference" / "schema" / "env.json").read_bytes())


def test_explain_shows_each_value_with_its_line_and_no_secret(site: Path) -> None:
    ended = run("explain", "dev", "--host", "pve", cwd=site)
    assert ended.status == 0
    assert "nodes/pve.yaml:3" in ended.stdout
    assert "envs/dev.yaml:2 (`vmid_base` + 0)" in ended.stdout
    everything = ended.stdout + run("explain", "env:dev", "-H", "pve", "--json", cwd=site).stdout
    assert not any(part in everything for part in SECRET_PARTS)


def test_explain_as_json_has_every_value_and_the_model(site: Path) -> None:
    document = run("explain", "dev", "-H", "pve", "--json", cwd=site).document
    cores = next(one for one in document["values"] if one["key"] == "cores")
    assert (cores["value"], cores["file"], cores["line"]) == (1, "envs/dev.yaml", 6)
    assert document["desired"]["vms"][0]["name"] == "test"


@pytest.mark.parametrize("form", ["--tfvars", "--ansible"])
def test_variables_are_printed_masked_and_written_whole_for_their_owner(form: str, site: Path) -> None:
    printed = run("explain", "dev", "-H", "father", form, cwd=site)
    assert printed.status == 0
    assert not any(part in printed.stdout for part in SECRET_PARTS)
    assert run("explain", "dev", "-H", "father", form, "--out", "vars.json", cwd=site).status == 0
    written = site / "vars.json"
    assert stat.S_IMODE(written.stat().st_mode) == 0o600
    assert orjson.loads(written.read_bytes()).keys() == orjson.loads(printed.stdout).keys()
    assert (TOKEN in written.read_text()) == (form == "--tfvars")


def test_an_env_that_names_its_node_needs_no_option(tmp_path: Path) -> None:
    site = write_site(tmp_path, FULL)
    assert run("explain", "shop", cwd=site).status == 0
    ended = run("explain", "shop", "--host", "nobody", cwd=site)
    assert (ended.status, "no node 'nobody'" in ended.stderr) == (65, True)


def test_explain_says_what_it_was_not_given(site: Path) -> None:
    assert "E-SITE-NODE" in run("explain", "dev", cwd=site).stderr
    assert "E-SITE-UNKNOWN" in run("explain", "dve", "-H", "pve", cwd=site).stderr
    assert run("explain", "manifest:dev", "-H", "pve", cwd=site).status == 64
    assert run("explain", "dev", "-H", "pve", "--out", "x", cwd=site).status == 64


def test_a_spec_is_shown_as_its_guest_receives_it(site: Path) -> None:
    assert run("spec", "list", cwd=site).stdout == "base\n"
    document = run("spec", "show", "base", "--json", cwd=site).document
    assert [user["name"] for user in document["access"]["users"]] == ["homestak", "ops"]
    assert document["access"]["_posture"]["ssh"]["port"] == 22
    assert "ssh_permit_root_login: 'yes'" in run("spec", "show", "base", "--ansible", cwd=site).stdout


def test_specs_are_validated_by_themselves(site: Path) -> None:
    assert run("spec", "validate", cwd=site).status == 0
    write_site(site, v2__specs__bad="schema_version: 1\naccess: {posture: nope}\n", envs__dev="vms: [\n")
    assert run("spec", "validate", "base", cwd=site).status == 0
    ended = run("spec", "validate", cwd=site)
    assert ended.status == 65
    assert "v2/specs/bad.yaml:2:19" in ended.stderr
    assert "envs/dev.yaml" not in ended.stderr
    assert run("spec", "validate", "nobody", cwd=site).status == 65


def test_a_site_of_sops_secrets_is_read_with_the_users_key(tmp_path: Path) -> None:
    public, private = new_identity()
    site = write_site(tmp_path / "site", secrets=None)
    create_sops_file(site / "secrets.yaml", SEED["secrets.yaml"].encode(), [public])
    locked = run("site", "validate", cwd=site)
    assert locked.status == 65
    assert public in locked.stderr
    opened = stackyard("explain", "dev", "-H", "pve", cwd=site, env={"SOPS_AGE_KEY": private})
    assert opened.status == 0, opened
    assert "********" in opened.stdout
    assert not any(part in opened.stdout for part in SECRET_PARTS)
