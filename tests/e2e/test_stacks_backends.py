"""Stacks with a backend of their own: S3 with its lock object, files, workspaces, backend config files."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import boto3  # type: ignore[import-untyped]
import pytest
from tests.support.engine import StateServer, engine, real_engine, state_server
from tests.support.seaweed import ACCESS_KEY, BUCKET, SECRET_KEY, Seaweed, new_prefix, seaweed
from tests.support.stack_repo import StackRepo, make_repo

from stackyard.engine.version import Engine, Flavour

__all__ = ["engine", "seaweed", "state_server"]

pytestmark = [pytest.mark.timeout(300)]

TARGET = "stack:onprem/a"
FOLDER = "stacks/onprem/a"
_MAIN = """
    resource "terraform_data" "x" { input = "hello" }
    output "said" { value = terraform_data.x.output }
"""


def _settings(server: Seaweed, key: str) -> str:
    return f"""
        bucket = "{BUCKET}"
        key = "{key}"
        region = "us-east-1"
        endpoints = {{ s3 = "{server.endpoint}" }}
        use_path_style = true
        use_lockfile = true
        skip_credentials_validation = true
        skip_metadata_api_check = true
        skip_region_validation = true
        skip_requesting_account_id = true
        skip_s3_checksum = true
    """


def _repo(
    folder: Path, server: Seaweed, *, in_file: bool = False, engine: Engine | None = None
) -> tuple[StackRepo, str]:
    key = f"{new_prefix()}/onprem/a.tfstate"
    settings = _settings(server, key)
    files = {f"{FOLDER}/main.tf": _MAIN}
    if in_file:
        files[f"{FOLDER}/backend.tf"] = 'terraform {\n  backend "s3" {}\n}\n'
        files[f"{FOLDER}/backend.config"] = settings
        files[f"{FOLDER}/stack.yaml"] = "backend_config: [backend.config]\n"
    else:
        files[f"{FOLDER}/backend.tf"] = f'terraform {{\n  backend "s3" {{{settings}}}\n}}\n'
    env = _choice(engine) | {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}
    return make_repo(folder, files, env=env), key


def _choice(engine: Engine | None) -> dict[str, str]:
    return {} if engine is None else {"STACKYARD_TOFU": str(engine.path)}


def _client(server: Seaweed) -> boto3.client:
    return boto3.client(
        "s3",
        endpoint_url=server.endpoint,
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=SECRET_KEY,
        region_name="us-east-1",
    )


def _state(server: Seaweed, key: str) -> dict[str, object]:
    client = _client(server)
    try:
        found: dict[str, object] = json.loads(client.get_object(Bucket=BUCKET, Key=key)["Body"].read())
    finally:
        client.close()
    return found


@pytest.mark.parametrize("in_file", [False, True], ids=["block", "config file"])
def test_a_stack_in_a_bucket_is_planned_applied_bound_and_read(
    tmp_path: Path, seaweed: Seaweed, in_file: bool, engine: Engine
) -> None:
    repo, key = _repo(tmp_path, seaweed, in_file=in_file, engine=engine)
    repo.run("plan", TARGET, "--out", "plan.bin")
    repo.run("plan", TARGET, "--out", "later.bin")
    assert repo.json("apply", TARGET, "--plan", "plan.bin")["applied"]["add"] == 1
    state = _state(seaweed, key)
    moved = repo.json("apply", TARGET, "--plan", "later.bin", status=65)["error"]
    assert f"the state was nothing and is now {state['lineage']}/{state['serial']}" in moved["detail"]
    assert repo.actions(TARGET) == {}
    assert repo.run("output", TARGET, "--raw", "said").stdout == "hello"
    shown = repo.run("stack", "show", "onprem/a").stdout + repo.run("stack", "list", "--json").stdout
    assert key in shown
    assert not list((tmp_path / FOLDER).glob("*.tfstate*"))
    assert SECRET_KEY not in shown


@pytest.mark.tofu
def test_a_lock_object_of_another_is_waited_for_and_reported_with_its_holder(
    tmp_path: Path, seaweed: Seaweed
) -> None:
    repo, key = _repo(tmp_path, seaweed)
    repo.run("apply", TARGET)
    repo.write({f"{FOLDER}/main.tf": _MAIN.replace("hello", "again")})
    repo.commit()
    held = {"ID": "1111-2222", "Operation": "OperationTypeApply", "Who": "eve@elsewhere", "Version": "1.11.0"}
    client = _client(seaweed)
    client.put_object(Bucket=BUCKET, Key=f"{key}.tflock", Body=json.dumps(held).encode())
    error = repo.json("apply", TARGET, "--lock-wait", "2", status=None)["error"]
    assert error["code"] == "E-STATE-LOCKED", error
    assert "eve@elsewhere" in json.dumps(error)
    assert "1111-2222" in json.dumps(error)
    client.delete_object(Bucket=BUCKET, Key=f"{key}.tflock")
    client.close()
    assert repo.json("apply", TARGET)["applied"]["change"] == 1


def test_workspaces_of_a_bucket_have_states_of_their_own(tmp_path: Path, seaweed: Seaweed) -> None:
    repo, key = _repo(tmp_path, seaweed)
    repo.write({f"{FOLDER}/ws.tf": 'output "ws" { value = terraform.workspace }\n'})
    repo.commit()
    repo.run("apply", f"{TARGET}@blue")
    assert len(repo.actions(TARGET)) == 1
    assert repo.actions(f"{TARGET}@blue") == {}
    assert _state(seaweed, f"env:/blue/{key}")["outputs"] == {"ws": {"value": "blue", "type": "string"}} | {
        "said": {"value": "hello", "type": "string"}
    }


def test_workspaces_of_a_file_have_states_of_their_own(tmp_path: Path) -> None:
    ws = 'output "ws" { value = terraform.workspace }\n'
    repo = make_repo(tmp_path, {f"{FOLDER}/main.tf": _MAIN, f"{FOLDER}/ws.tf": ws})
    repo.run("apply", f"{TARGET}@blue")
    assert len(repo.actions(TARGET)) == 1
    assert repo.actions(f"{TARGET}@blue") == {}
    assert repo.run("output", f"{TARGET}@blue", "--raw", "ws").stdout == "blue"


def test_two_config_files_with_one_key_are_found(tmp_path: Path, seaweed: Seaweed) -> None:
    repo, _ = _repo(tmp_path, seaweed, in_file=True)
    for name in ("main.tf", "backend.tf", "backend.config", "stack.yaml"):
        repo.write({f"stacks/onprem/b/{name}": (tmp_path / FOLDER / name).read_text()})
    ended = repo.run("plan", TARGET, status=None)
    assert "Two stacks keep their state in the same place" in ended.stderr, ended.stderr
    assert ended.status == 65


def test_a_bucket_that_cannot_be_used_says_what_to_do(tmp_path: Path, seaweed: Seaweed) -> None:
    repo, _ = _repo(tmp_path, seaweed)
    repo.env["AWS_SECRET_ACCESS_KEY"] = "wrong-secret-of-mine"
    denied = repo.json("plan", TARGET, status=None)["error"]
    assert "wrong-secret-of-mine" not in json.dumps(denied)
    assert "403" in json.dumps(denied) or "SignatureDoesNotMatch" in json.dumps(denied), denied
    text = (tmp_path / FOLDER / "backend.tf").read_text().replace(seaweed.endpoint, "http://127.0.0.1:1")
    repo.write({f"{FOLDER}/backend.tf": text})
    repo.env["AWS_MAX_ATTEMPTS"] = "1"
    gone = repo.json("plan", TARGET, status=None)["error"]
    assert "127.0.0.1:1" in json.dumps(gone), gone
    assert gone["remedy"]


def test_a_stack_is_adopted_from_a_bucket_and_leaves_again(
    tmp_path: Path, seaweed: Seaweed, engine: Engine
) -> None:
    repo, key = _repo(tmp_path, seaweed, engine=engine)
    repo.run("apply", TARGET)
    before = _state(seaweed, key)
    moved = repo.json("stack", "adopt", "onprem/a")
    assert moved["resources"] == 1
    repo.commit()
    assert repo.actions(TARGET) == {}
    assert _state(seaweed, key) == before
    left = repo.json("stack", "leave", "onprem/a")
    assert left["resources"] == 1
    repo.commit()
    assert repo.actions(TARGET) == {}
    # Once it is elsewhere, the state of the store is no longer the state of the stack.
    repo.run("apply", TARGET)
    local = json.loads((tmp_path / FOLDER / "terraform.tfstate").read_text())
    assert local["lineage"] == before["lineage"]


def test_a_stack_that_the_engine_alone_worked_on_is_taken_as_it_is(tmp_path: Path, seaweed: Seaweed) -> None:
    repo, key = _repo(tmp_path, seaweed)
    program = real_engine(Flavour.TOFU).path
    for verb in (("init", "-input=false"), ("apply", "-input=false", "-auto-approve")):
        subprocess.run(
            [str(program), *verb],
            cwd=tmp_path / FOLDER,
            env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), **repo.env},
            check=True,
            capture_output=True,
        )
    serial = _state(seaweed, key)["serial"]
    assert repo.actions(TARGET) == {}
    assert repo.json("apply", TARGET)["applied"] is None
    assert _state(seaweed, key)["serial"] == serial


_OWN_HTTP = """
    terraform {{
      backend "http" {{
        address = "{address}"
        lock_address = "{address}"
        unlock_address = "{address}"
        retry_max = 0
      }}
    }}
"""


def _http_repo(folder: Path, server: StateServer, engine: Engine) -> StackRepo:
    address = server.address
    code = {f"{FOLDER}/main.tf": _MAIN, f"{FOLDER}/backend.tf": _OWN_HTTP.format(address=address)}
    return make_repo(folder, code, env=_choice(engine))


def test_a_state_that_could_not_be_stored_leaves_the_code_and_is_stored_by_the_next_run(
    tmp_path: Path, state_server: StateServer, engine: Engine
) -> None:
    repo = _http_repo(tmp_path, state_server, engine)
    state_server.faults["POST"] = 500
    failed = repo.json("apply", TARGET, status=None)["error"]
    assert failed["code"] == "E-STATE-NOT-SAVED", failed
    left = tmp_path / ".stackyard/work/stack--onprem~2f~a--default/errored.tfstate"
    assert str(left) in json.dumps(failed)
    assert left.is_file()
    assert not (tmp_path / FOLDER / "errored.tfstate").exists()
    assert repo.git("status", "--porcelain") == ""
    del state_server.faults["POST"]
    planned = repo.run("plan", TARGET)
    assert str(left) in planned.stderr
    again = repo.run("apply", TARGET)
    assert "is stored now" in again.stderr
    assert repo.actions(TARGET) == {}
    assert not left.exists()


def test_a_stack_with_an_http_backend_of_its_own_is_adopted(
    tmp_path: Path, state_server: StateServer, engine: Engine
) -> None:
    repo = _http_repo(tmp_path, state_server, engine)
    assert repo.json("apply", TARGET)["applied"]["add"] == 1
    assert repo.json("stack", "adopt", "onprem/a")["resources"] == 1
    repo.commit()
    assert repo.actions(TARGET) == {}


def test_an_empty_http_block_with_an_address_in_the_environment_is_the_users_own(
    tmp_path: Path, state_server: StateServer
) -> None:
    files = {f"{FOLDER}/main.tf": _MAIN, f"{FOLDER}/backend.tf": 'terraform {\n  backend "http" {}\n}\n'}
    repo = make_repo(tmp_path, files, env=dict(state_server.environment))
    assert repo.json("apply", TARGET)["applied"]["add"] == 1
    assert state_server.state is not None
    for name in state_server.environment:
        del repo.env[name]
    # Without it the state is in the store, where there is none.
    assert len(repo.actions(TARGET)) == 1


def test_a_password_in_the_address_of_a_backend_is_not_shown(
    tmp_path: Path, state_server: StateServer
) -> None:
    address = state_server.address.replace("://", "://ops:hunter2hunter2@")
    backend = _OWN_HTTP.format(address=address)
    repo = make_repo(tmp_path, {f"{FOLDER}/main.tf": _MAIN, f"{FOLDER}/backend.tf": backend})
    said = [
        repo.run(*words)
        for words in (
            ("apply", TARGET),
            ("stack", "show", "onprem/a"),
            ("stack", "show", "onprem/a", "--json"),
            ("stack", "list", "--json"),
            ("runs", "list", "--json"),
            ("stack", "adopt", "onprem/a"),
        )
    ]
    assert [one for one in said if "hunter2hunter2" in one.stdout + one.stderr] == []


_ENCRYPTED = """
    terraform {
      BACKEND
      encryption {
        key_provider "pbkdf2" "own" { passphrase = "a-passphrase-of-the-user" }
        method "aes_gcm" "own" { keys = key_provider.pbkdf2.own }
        state { method = method.aes_gcm.own }
        plan { method = method.aes_gcm.own }
      }
    }
"""


@pytest.mark.parametrize(
    "backend",
    [pytest.param('backend "http" {}', id="store"), pytest.param("", id="local", marks=pytest.mark.soak)],
)
def test_a_state_that_the_code_encrypts_is_applied_bound_read_and_given_to_dependents(
    tmp_path: Path, backend: str
) -> None:
    after = {
        "stacks/onprem/b/main.tf": 'variable "said" {}\nresource "terraform_data" "b" { input = var.said }\n',
        "stacks/onprem/b/stack.yaml": "after:\n  - stack: onprem/a\n    outputs: [said]\n",
    }
    code = {f"{FOLDER}/main.tf": _MAIN, f"{FOLDER}/backend.tf": _ENCRYPTED.replace("BACKEND", backend)}
    repo = make_repo(tmp_path, {**code, **after})
    repo.run("plan", TARGET, "--out", "plan.bin")
    assert repo.json("apply", TARGET, "--plan", "plan.bin")["applied"]["add"] == 1
    moved = repo.json("apply", TARGET, "--plan", "plan.bin", status=65)["error"]
    assert moved["code"] == "E-PLAN-MOVED"
    assert repo.actions(TARGET) == {}
    assert repo.run("output", TARGET, "--raw", "said").stdout == "hello"
    assert repo.json("apply", "stack:onprem/b")["applied"]["add"] == 1


def test_a_backend_that_was_changed_by_hand_says_how_to_take_the_state_along(
    tmp_path: Path, engine: Engine
) -> None:
    repo = make_repo(tmp_path, {f"{FOLDER}/main.tf": _MAIN}, env=_choice(engine))
    repo.run("apply", TARGET)
    before = (tmp_path / FOLDER / "terraform.tfstate").read_bytes()
    repo.write({f"{FOLDER}/backend.tf": 'terraform {\n  backend "http" {}\n}\n'})
    error = repo.json("plan", TARGET, status=65)["error"]
    assert error["code"] == "E-STACK-STATE-LEFT", error
    assert (tmp_path / FOLDER / "terraform.tfstate").read_bytes() == before
    (tmp_path / FOLDER / "backend.tf").unlink()
    repo.run("stack", "adopt", "onprem/a")
    assert repo.actions(TARGET) == {}


@pytest.mark.tofu
def test_a_backend_that_cannot_be_reached_leaves_the_one_before_usable(tmp_path: Path) -> None:
    files = {f"{FOLDER}/main.tf": _MAIN, f"{FOLDER}/backend.tf": 'terraform {\n  backend "http" {}\n}\n'}
    away = 'terraform {\n  backend "http" {\n    address = "http://127.0.0.1:9/x"\n  }\n}\n'
    env = {"STACKYARD_TOFU": str(real_engine(Flavour.TOFU).path), "TF_HTTP_RETRY_MAX": "0"}
    repo = make_repo(tmp_path / "repo", files, env=env)
    repo.run("plan", TARGET)
    repo.write({f"{FOLDER}/backend.tf": away})
    assert repo.json("plan", TARGET, status=69)["error"]["code"] == "E-BACKEND-UNREACHABLE"
    repo.write({f"{FOLDER}/backend.tf": files[f"{FOLDER}/backend.tf"]})
    repo.run("plan", TARGET)
