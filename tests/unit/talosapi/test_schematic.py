"""The ids of schematics, known without a network."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackyard.talosapi.schematic import (
    MetaValue,
    Overlay,
    Schematic,
    SchematicError,
    canonical_yaml,
    parse_schematic,
    schematic_id,
)

# As the public factory answers.
PUBLISHED = {
    "": "376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba",
    "customization: {systemExtensions: {officialExtensions: [siderolabs/qemu-guest-agent]}}": (
        "ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515"
    ),
    "customization: {extraKernelArgs: [noapic, nolapic]}": (
        "9cba8e32753f91a16c1837ab8abf356af021706ef284aef07380780177d9a06c"
    ),
    "customization: {meta: [{key: 10, value: foo}]}": (
        "d308a2a5ee2277bed5fbaa104fcbc8d59122abfa737df987a95b4ca763459a7f"
    ),
    "customization: {secureboot: {includeWellKnownCertificates: true}}": (
        "fa8e05f142a851d3ee568eb0a8e5841eaf6b0ebc8df9a63df16ac5ed2c04f3e6"
    ),
    "customization: {diskImage: {sectorSize: 4096}}": (
        "92833e9ddd9bb9e11b2464fa5525429f01866306d52ebd882ee08d7918f6d1ea"
    ),
    "overlay: {name: rpi_generic, image: siderolabs/sbc-raspberrypi}": (
        "ee21ef4a5ef808a9b7484cc0dda0f25075021691c8c09a276591eedb638ea1f9"
    ),
}


@pytest.mark.parametrize(("text", "expected"), PUBLISHED.items())
def test_an_id_is_that_of_the_public_factory(text: str, expected: str) -> None:
    assert schematic_id(parse_schematic(text)) == expected


def test_json_is_read_as_yaml_is() -> None:
    text = '{"customization": {"systemExtensions": {"officialExtensions": ["siderolabs/qemu-guest-agent"]}}}'
    assert schematic_id(parse_schematic(text)).startswith("ce4c9805")


def test_the_order_of_extensions_matters_and_empty_fields_do_not() -> None:
    one, other = Schematic(extensions=("a/b", "c/d")), Schematic(extensions=("c/d", "a/b"))
    assert schematic_id(one) != schematic_id(other)
    assert schematic_id(parse_schematic("customization: {extraKernelArgs: [], bootloader: ''}")) == (
        schematic_id(Schematic())
    )


def test_a_word_that_reads_as_something_else_is_in_double_quotes() -> None:
    text = canonical_yaml(Schematic(extra_kernel_args=("on", "10", "", "console=ttyS0", "a: b", "-talos.x")))
    assert text == (
        "customization:\n    extraKernelArgs:\n"
        '        - "on"\n        - "10"\n        - ""\n'
        "        - console=ttyS0\n        - 'a: b'\n        - -talos.x\n"
    )


def test_options_of_an_overlay_are_in_the_order_of_their_names() -> None:
    text = canonical_yaml(
        Schematic(overlay=Overlay(image="i", name="n", options={"b": [1, {"d": True}], "a": "x"}))
    )
    assert text == (
        'overlay:\n    image: i\n    name: "n"\n    options:\n        a: x\n        b:\n'
        "            - 1\n            - d: true\ncustomization: {}\n"
    )


def test_a_text_of_several_lines_is_a_block() -> None:
    text = canonical_yaml(Schematic(embedded_machine_configuration="a: 1\nb: 2\n"))
    assert text == "customization:\n    embeddedMachineConfiguration: |\n        a: 1\n        b: 2\n"


def test_everything_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(SchematicError) as caught:
        parse_schematic("customization: {sytemExtensions: {}, extraKernelArgs: [1], meta: 3}\nother: 1")
    assert "Did you mean `systemExtensions`?" in caught.value.detail
    assert "customization.extraKernelArgs[0] must be text." in caught.value.detail
    assert "customization.meta must be a list." in caught.value.detail
    assert "There is no field 'other'." in caught.value.detail


@pytest.mark.parametrize("text", ["[1]", "text", "a: b: c", "\x00", "customization: [1]"])
def test_what_is_no_schematic_is_refused(text: str) -> None:
    with pytest.raises(SchematicError):
        parse_schematic(text)


words = st.text(st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="\u2028\u2029\x85\ufeff"))


@given(
    st.builds(
        Schematic,
        owner=words,
        overlay=st.none() | st.builds(Overlay, image=words, name=words.filter(bool)),
        extra_kernel_args=st.lists(words, max_size=4).map(tuple),
        extensions=st.lists(words, max_size=4).map(tuple),
        meta=st.lists(st.builds(MetaValue, key=st.integers(0, 255), value=words), max_size=3).map(tuple),
        enroll_keys=words,
        well_known_certificates=st.booleans(),
        sector_size=st.sampled_from((0, 512, 4096)),
    )
)
def test_what_is_written_is_read_as_the_same(schematic: Schematic) -> None:
    text = canonical_yaml(schematic)
    assert parse_schematic(text) == schematic
    assert schematic_id(schematic) == hashlib.sha256(text.encode()).hexdigest()
