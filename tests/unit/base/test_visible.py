"""Text from outside does nothing but appear."""

from __future__ import annotations

import io

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from stackyard.base.visible import visible
from stackyard.cli.views.text_writer import TextWriter
from stackyard.clients.proxmox.failures import Call, Refusal, make_refused_error
from stackyard.desired import Desired, Vm
from stackyard.operator.reports.texts import as_block, as_line
from stackyard.render.userdata import cloud_config


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("web\u202egnp.exe", "web\\u202egnp.exe"),
        ("a\u2066b\u2069c\u200bd\ufeffe", "a\\u2066b\\u2069c\\u200bd\\ufeffe"),
        ("tag\U000e0041", "tag\\U000e0041"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("\u2028\ud800", "\\u2028\\ud800"),
        ("gr\u00fc\u00df \U0001f469\u200d\U0001f4bb\n\tx", "gr\u00fc\u00df \U0001f469\u200d\U0001f4bb\n\tx"),
    ],
)
def test_what_hides_or_steers_is_spelled_out(text: str, shown: str) -> None:
    assert visible(text) == shown
    assert as_block(text)[1:-1] == shown.splitlines()
    assert "\u202e" not in as_line(text)


@given(st.text())
def test_no_text_becomes_a_line_of_ours(text: str) -> None:
    stream = io.StringIO()
    writer = TextWriter(stream, colour=False)
    writer.line(f"  {text}")
    writer.table(("name",), [(text,)])
    lines = stream.getvalue().split("\n")
    assert all(line.startswith("  ") for line in lines[:-3])
    assert len(lines[-3:]) == 3


def test_a_refusal_of_proxmox_is_one_line_of_a_length() -> None:
    """A guest writes some of it: what its agent answers as an error."""
    refusal = Refusal(
        status=500,
        reason="Agent error",
        errors={"x": "a\nError: all is well\x1b[2J"},
        message="line\n" + "b" * 1_000_000,
    )
    detail = make_refused_error(Call("GET", "/nodes/pve1/qemu/500/agent/ping"), refusal).detail
    assert "\n" not in detail
    assert "\x1b" not in detail
    assert len(detail) < 5_000


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters=[*map(chr, range(32))])))
def test_no_text_breaks_out_of_cloud_init(text: str) -> None:
    vm = {
        "key": "web",
        "name": "web",
        "node": "pve1",
        "cloud_init": {
            "datastore": "local",
            "users": [{"name": "ops"}],
            "commands": [f"{text}\nruncmd: [x]"],
            "packages": ["a"],
        },
    }
    found = Desired.model_validate({"vms": [vm]}).vms[0]
    assert isinstance(found, Vm)
    assert found.cloud_init is not None
    config = cloud_config(found, found.cloud_init)
    assert isinstance(config, str)
    read = yaml.safe_load(config)
    assert read["runcmd"] == [f"{text}\nruncmd: [x]"]
    assert read["hostname"] == "web"
