"""Values of variables from committed JSON and from outputs of other stacks."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stackyard.base.errors import InvalidInputError
from stackyard.sources.deployment.store import ObjectMissingError
from stackyard.sources.stacks.input_values import InputValueError, inputs_text, read_domain_values
from stackyard.sources.stacks.tfvars import TfvarsError, read_tfvars
from stackyard.sources.stacks.var_file_content import read_descriptor


def test_values_become_hcl_in_which_template_marks_are_data() -> None:
    data = {"a": "${b} %{c}\n\b", "m": {"k k": [1, 2.5, None, True]}}
    read = read_tfvars(inputs_text(data), "x.tfvars")
    assert {name: one.value for name, one in read.variables.items()} == data


@pytest.mark.parametrize("values", [{"no name": 1}, {"a": float("nan")}])
def test_what_is_no_value_of_a_variable_is_refused(values: dict[str, object]) -> None:
    with pytest.raises(InputValueError):
        inputs_text(values)


def test_committed_files_are_joined_and_keep_their_lines(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(
        '{\n  "_comment": "x",\n  "networks": {"lan": {"id": 1, "_note": "y"}}\n}'
    )
    (tmp_path / "b.json").write_text('{"ports": [80]}')
    found = read_domain_values(tmp_path, {"networks", "ports", "more"})
    assert found.content == b'networks = {"lan"={"id"=1}}\nports = [80]\n'
    assert found.lines == (3, 1)


def test_a_key_without_a_variable_and_an_empty_value_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{\n"networks": {"_note": 1}}')
    (tmp_path / "b.json").write_text('{"portz": [80]}')
    with pytest.raises(InvalidInputError) as caught:
        read_domain_values(tmp_path, {"networks", "ports"})
    assert [(one.kind.code, str(one.where)) for one in caught.value.diagnostics] == [
        ("E-STACK-DOMAIN-EMPTY", f"{tmp_path}/a.json:2:1"),
        ("E-STACK-DOMAIN-UNDECLARED", f"{tmp_path}/b.json:1:2"),
    ]


@pytest.mark.parametrize("content", ["", " ", "{}", "null", '{"_c": 1}', '{"a": '])
def test_an_empty_or_cut_off_file_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(InvalidInputError):
        read_domain_values(tmp_path, {"a"})


def test_a_folder_without_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ObjectMissingError):
        read_domain_values(tmp_path, {"a"})


def test_process_substitution_is_read_once_and_kept() -> None:
    reader, writer = os.pipe()
    os.write(writer, b'password = "hunter2-hunter2"\n')
    os.close(writer)
    try:
        found = read_descriptor(Path(f"/dev/fd/{reader}"))
    finally:
        os.close(reader)
    assert found is not None
    assert found[0].content == b'password = "hunter2-hunter2"\n'
    assert found[1] == {"hunter2-hunter2"}
    assert read_descriptor(Path("vms.tfvars")) is None


def test_process_substitution_of_a_command_that_failed_is_refused() -> None:
    for content, error in ((b"", InvalidInputError), (b'ERROR! "', TfvarsError)):
        reader, writer = os.pipe()
        os.write(writer, content)
        os.close(writer)
        try:
            with pytest.raises(error):
                read_descriptor(Path(f"/proc/self/fd/{reader}"))
        finally:
            os.close(reader)
