"""Which variables files a stack uses, and which are refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.repositories import git, new_repository
from tests.support.secrets import keyring, seal_text

from stackyard.base.diagnostics import Diagnostic
from stackyard.base.errors import InvalidInputError
from stackyard.base.redaction import MASK
from stackyard.secrets.base import SecretsLockedError
from stackyard.secrets.keyring import Keyring
from stackyard.secrets.sops.text import FileFormat
from stackyard.secrets.var_file import PrivateVarFile
from stackyard.secrets.vault.file import seal_whole
from stackyard.sources.stacks.model import Stack, StackSettings
from stackyard.sources.stacks.var_files import StackVarFiles, find_var_files

SECRET = b'password = "hunter2-hunter2"\n'


def vault(content: bytes = SECRET) -> bytes:
    return seal_whole(content, keyring())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return new_repository(tmp_path / "repository")


def write(folder: Path, **files: str | bytes) -> None:
    for name, content in files.items():
        path = folder / name.replace("__", ".")
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


async def find(folder: Path, workspace: str = "default", **options: object) -> StackVarFiles:
    settings = StackSettings(
        **{name: options.pop(name) for name in ("var_files", "secrets") if name in options}  # type: ignore[arg-type]
    )
    stack = Stack(name="a", folder=folder, path="a", settings=settings)
    return await find_var_files(stack, workspace, **{"keyring": keyring(), **options})  # type: ignore[arg-type]


async def refuse(folder: Path, workspace: str = "default", **options: object) -> tuple[Diagnostic, ...]:
    with pytest.raises(InvalidInputError) as caught:
        await find(folder, workspace, **options)
    assert "hunter2" not in str(caught.value) + repr(caught.value.diagnostics)
    return caught.value.diagnostics


def names(found: StackVarFiles) -> list[str]:
    return [(one if isinstance(one, Path) else one.path).name for one in found.passed]


async def test_one_plain_file_is_passed_and_secrets_come_after_it(folder: Path) -> None:
    write(folder, vms__tfvars="a = 1\n", secrets__tfvars=vault(), terraform__tfvars="b = 2\n")
    write(folder, z__auto__tfvars="c = 3\n", b__auto__tfvars__json='{"d": 4}')
    found = await find(folder)
    assert names(found) == ["vms.tfvars", "secrets.tfvars"]
    assert [path.name for path in found.loaded] == ["terraform.tfvars", "b.auto.tfvars.json", "z.auto.tfvars"]
    assert found.passed[1] == PrivateVarFile(path=folder / "secrets.tfvars", content=SECRET)
    assert [name for name, _ in found.places] == ["b", "d", "c", "a", "password"]
    assert "hunter2" not in repr(found)
    assert found.redactor()("it is hunter2-hunter2") == f"it is {MASK}"


async def test_of_several_the_one_of_the_workspace_is_meant(folder: Path) -> None:
    write(folder, dev__tfvars="a = 1\n", prod__tfvars="a = 2\n")
    write(folder, dev__secret__tfvars=vault(), prod__secrets__tfvars=vault(), secrets__tfvars=vault())
    assert names(await find(folder, "prod")) == ["prod.tfvars", "secrets.tfvars", "prod.secrets.tfvars"]
    plain, secret = await refuse(folder)
    assert "dev.tfvars, prod.tfvars" in plain.detail
    assert "dev.secret.tfvars, prod.secrets.tfvars" in secret.detail
    assert "stack.yaml" in plain.kind.remedy


async def test_stack_yaml_names_files_and_their_order(folder: Path) -> None:
    write(folder, b__tfvars="a = 1\n", a__tfvars="a = 2\n", c__tfvars="a = 3\n", key__tfvars=vault())
    chosen = (Path("b.tfvars"), Path("a.tfvars"))
    found = await find(folder, var_files=chosen, secrets=(Path("key.tfvars"),))
    assert names(found) == ["b.tfvars", "a.tfvars", "key.tfvars"]
    (missing,) = await refuse(folder, var_files=(Path("b.tfvars"), Path("no.tfvars")))
    assert missing.kind.code == "E-STACK-VAR-FILE-MISSING"


@pytest.mark.parametrize(
    "name", ["secrets.tfvars", "x.secret.tfvars", "x.secrets.tfvars.json", "x.sops.tfvars"]
)
async def test_a_secrets_file_in_clear_is_refused_even_where_git_ignores_it(folder: Path, name: str) -> None:
    (folder / ".gitignore").write_text("*\n")
    (folder / name).write_text('{"a": "hunter2"}' if name.endswith(".json") else 'a = "hunter2"\n')
    (found,) = await refuse(folder)
    assert f"ansible-vault encrypt {folder / name}" in found.detail


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("secrets.sops.tfvars", seal_text(SECRET, FileFormat.BINARY)),
        ("secrets.tfvars", seal_text(SECRET, FileFormat.BINARY)),
        ("secrets.tfvars.json", seal_text('{\n"password": "hunter2-hunter2"}', FileFormat.JSON)),
        ("vms.secret.tfvars.json", vault(b'{\n"password": "hunter2-hunter2"}')),
        ("vms.tfvars", vault()),
    ],
)
async def test_every_form_is_decrypted_to_text_of_hcl(folder: Path, name: str, content: bytes) -> None:
    (folder / name).write_bytes(content)
    (passed,) = (await find(folder)).passed
    assert isinstance(passed, PrivateVarFile)
    assert passed.content == SECRET
    assert passed.line(1) == (2 if name.endswith(".json") else 1)


async def test_a_file_that_is_locked_names_itself_and_what_was_tried(folder: Path) -> None:
    write(folder, secrets__tfvars=vault())
    with pytest.raises(SecretsLockedError) as caught:
        await find(folder, keyring=Keyring(env={"ANSIBLE_VAULT_PASSWORD": "wrong", "HOME": "/nonexistent"}))
    assert "secrets.tfvars" in caught.value.detail
    assert "ANSIBLE_VAULT_PASSWORD is set" in caught.value.detail


async def test_broken_text_inside_the_vault_is_placed_without_a_word_of_it(folder: Path) -> None:
    write(folder, secrets__tfvars=vault(b'a = 1\npassword = "hunter2\n'))
    (found,) = await refuse(folder)
    assert str(found.where) == f"{folder / 'secrets.tfvars'}:2:12"


async def test_an_empty_file_is_never_a_plan(folder: Path) -> None:
    write(folder, vms__tfvars="# later\n", secrets__tfvars=vault(b"\n"), terraform__tfvars="")
    assert [one.kind.code for one in await refuse(folder)] == ["E-STACK-VAR-FILE-EMPTY"] * 2


async def test_an_encrypted_file_that_the_engine_reads_by_itself_is_refused(folder: Path) -> None:
    write(folder, terraform__tfvars=vault())
    (found,) = await refuse(folder)
    assert found.kind.code == "E-STACK-VAR-FILE-ENCRYPTED"


async def test_values_that_git_ignores_are_masked_and_tracked_ones_are_not(folder: Path) -> None:
    write(folder, __gitignore="terraform.tfvars\n")
    write(folder, terraform__tfvars='token = "hunter2-hunter2"\n', vms__tfvars='name = "web-server"\n')
    git(folder, "add", "vms.tfvars")
    found = await find(folder, sensitive=frozenset({"token"}))
    assert found.secrets == {"hunter2-hunter2"}


async def test_tracked_files_with_secrets_in_clear_are_refused_with_their_lines(folder: Path) -> None:
    token = "ghp_" + "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2"
    write(folder, terraform__tfvars=f'a = 1\ntoken = "{token}"\n', vms__tfvars='x = ""\n\npin = "hunter2"\n')
    git(folder, "add", "-A")
    found = await refuse(folder, sensitive=frozenset({"pin", "x"}))
    assert [(one.kind.code, one.where and one.where.line) for one in found] == [
        ("E-SECRETS-FOUND", 2),
        ("E-STACK-SENSITIVE-VALUE", 3),
    ]


async def test_outside_of_a_repository_files_are_read_all_the_same(tmp_path: Path) -> None:
    write(tmp_path, vms__tfvars="a = 1\n")
    assert names(await find(tmp_path, sensitive=frozenset({"a"}))) == ["vms.tfvars"]


async def test_the_digest_changes_with_any_content_and_needs_its_key(folder: Path) -> None:
    write(folder, vms__tfvars="a = 1\n", secrets__tfvars=vault(), terraform__tfvars="b = 2\n")
    first = await find(folder)
    write(folder, secrets__tfvars=vault())
    again = await find(folder)
    assert first.digest(b"k") == again.digest(b"k") != first.digest(b"other")
    seen = {first.digest(b"k")}
    for name in ("vms.tfvars", "terraform.tfvars"):
        (folder / name).write_text("a = 5\n")
        seen.add((await find(folder)).digest(b"k"))
    write(folder, secrets__tfvars=vault(b"password = 1\n"))
    seen.add((await find(folder)).digest(b"k"))
    assert len(seen) == 4


async def test_a_variable_with_two_sources_is_refused(folder: Path) -> None:
    write(folder, vms__tfvars="a = 1\n")
    found = await find(folder)
    more = found.with_values(PrivateVarFile(path=Path("outputs"), content=b"b = 2\n"), ["hunter2"])
    assert len(more.passed) == 2
    assert more.secrets == {"hunter2"}
    assert more.digest(b"k") != found.digest(b"k")
    with pytest.raises(InvalidInputError):
        more.with_values(PrivateVarFile(path=Path("outputs"), content=b"a = 2\n"))
    with pytest.raises(InvalidInputError):
        more.with_values(PrivateVarFile(path=Path("outputs"), content=b"b = 2\n"))
