"""Parts of the programs in guests that can be looked at from outside: versions, plans, user data."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

import pytest

from pvelab.machines.clouddata import list_host_keys, take_apart
from pvelab.machines.guest import cloudinit, packages
from pvelab.machines.guest.names import SHIMS


@pytest.mark.parametrize(
    ("left", "right", "sign"),
    [
        ("1.2", "1.10", -1),
        ("1.0~rc1", "1.0", -1),
        ("1:0.1", "2.0", 1),
        ("1.0-1", "1.0-1", 0),
        ("1.0-1+deb12u2", "1.0-1", 1),
        ("1.0+b1", "1.0a", 1),
        ("", "1", -1),
    ],
)
def test_versions_are_compared_as_dpkg_does(left: str, right: str, sign: int) -> None:
    found = packages.compare_versions(left, right)
    assert (found > 0) - (found < 0) == sign


def test_the_catalogue_names_what_it_needs_and_each_name_once() -> None:
    known = packages.catalogue()
    assert len(known) > 500
    assert {other for one in known.values() for other in one.depends} <= set(known)
    assert {"nginx", "openssh-server", "python3-apt", "sudo", "docker.io"} <= set(known)
    assert known["nginx"].services == ["nginx"]


def test_every_shim_has_a_module_that_answers_for_it() -> None:
    for name, module in SHIMS.items():
        found = __import__(f"pvelab.machines.guest.{module}", fromlist=["run"])
        assert callable(found.run), name


@pytest.mark.parametrize(
    ("encoding", "content", "expected"),
    [
        ("", "text", b"text"),
        ("b64", base64.b64encode(b"\x00\x01").decode(), b"\x00\x01"),
        ("base64", base64.b64encode(b"x").decode(), b"x"),
        ("gz+b64", base64.b64encode(gzip.compress(b"packed", mtime=0)).decode(), b"packed"),
        ("gzip+base64", base64.b64encode(gzip.compress(b"packed", mtime=0)).decode(), b"packed"),
    ],
)
def test_contents_of_write_files_are_decoded(encoding: str, content: str, expected: bytes) -> None:
    assert cloudinit._decode(content, encoding) == expected


@pytest.mark.parametrize(("encoding", "content"), [("b64", "abc"), ("gz+b64", "eHh4")])
def test_contents_that_are_not_what_they_say_are_refused(encoding: str, content: str) -> None:
    with pytest.raises(ValueError, match=r"not (base64|gzip)"):
        cloudinit._decode(content, encoding)


@pytest.mark.parametrize(
    ("data", "kinds", "problems"),
    [
        (b"#cloud-config\na: 1\n", ["config"], 0),
        (b"#!/bin/sh\ntrue\n", ["script"], 0),
        (b"#include\nhttps://example.invalid\n", [], 1),
        (b"#cloud-config\na: [\n", [], 1),
        (b"#cloud-config\n- a\n", [], 1),
        (b"just text", [], 1),
        (b"", [], 0),
        (b"\x1f\x8bbroken", [], 1),
        (gzip.compress(b"#cloud-config\na: 1\n", mtime=0), ["config"], 0),
        (b"## template: jinja\n#cloud-config\n", [], 1),
        (b"#cloud-boothook\necho x\n", ["boothook"], 0),
    ],
)
def test_user_data_is_taken_apart_and_what_is_wrong_is_named(
    data: bytes, kinds: list[str], problems: int
) -> None:
    found = take_apart(data)
    assert [part["kind"] for part in found["parts"]] == kinds
    assert len(found["problems"]) == problems
    json.dumps(found)


def test_values_of_yaml_that_json_lacks_become_text() -> None:
    data = b"#cloud-config\nwhen: 2026-01-02\n1: x\nraw: !!binary aGk=\nset: !!set {a, b}\n"
    (part,) = take_apart(data)["parts"]
    assert part["data"]["when"] == "2026-01-02"
    assert part["data"]["1"] == "x"
    assert part["data"]["raw"] == "hi"


def test_host_keys_are_those_of_the_user_data() -> None:
    cloud: dict[str, Any] = {
        "user": take_apart(b"#cloud-config\nssh_keys: {rsa_private: A, rsa_public: B}\n")
    }
    assert list_host_keys(cloud) == ("A",)
