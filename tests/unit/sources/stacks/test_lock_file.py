from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from stackyard.engine.version import Version
from stackyard.sources.stacks.lock_file import LockEntry, is_whole, read_lock, replace_entries

OTHER = """\
provider "registry.opentofu.org/acme/b" {
  version     = "3.2.4"
  constraints = "~> 3.2"
  hashes = [
    "h1:abc=",
  ]
}
"""
HEADER = '# This file is maintained automatically by "terraform init".\n# Manual edits may be lost.\n\n'

addresses = st.sampled_from(
    [f"{host}.test/{space}/{kind}" for host in "az" for space in "bc" for kind in "de"]
)
entries = st.builds(
    LockEntry,
    version=st.builds(Version, *[st.integers(0, 99)] * 3),
    constraints=st.sampled_from(["", "~> 1.0", ">= 1.0.0, < 2.0.0"]),
    hashes=st.sets(st.sampled_from(["h1:a+/b=", "h1:B", "zh:00ff", "zh:12"])).map(
        lambda found: tuple(sorted(found))
    ),
)


def test_one_entry_is_replaced_and_the_rest_stays() -> None:
    entry = LockEntry(version=Version(1, 2, 0), constraints="~> 1.2", hashes=("zh:2", "h1:1"))
    written = replace_entries((HEADER + OTHER).encode(), {"registry.opentofu.org/acme/a": entry})
    assert written.decode() == (
        f'{HEADER}provider "registry.opentofu.org/acme/a" {{\n  version     = "1.2.0"\n'
        f'  constraints = "~> 1.2"\n  hashes = [\n    "h1:1",\n    "zh:2",\n  ]\n}}\n\n{OTHER}'
    )


@settings(max_examples=40)
@given(st.dictionaries(addresses, entries, max_size=4), st.dictionaries(addresses, entries, max_size=3))
def test_what_is_written_is_read_again(first: dict[str, LockEntry], second: dict[str, LockEntry]) -> None:
    written = replace_entries(None, first)
    assert is_whole(written)
    assert read_lock(written) == first
    both = replace_entries(written, second)
    assert read_lock(both) == {**first, **second}
    assert replace_entries(both, {}) == both


def test_a_file_that_would_lose_something_is_not_whole() -> None:
    assert is_whole(OTHER.encode())
    assert not is_whole(f"<<<<<<< HEAD\n{OTHER}".encode())
    assert not is_whole(OTHER.replace("3.2.4", "three").encode())
    assert not is_whole(f"{OTHER}\nother {{\n}}\n".encode())


@settings(max_examples=40)
@given(st.binary(max_size=100))
def test_any_bytes_are_read_without_an_error(data: bytes) -> None:
    assert isinstance(read_lock(data), dict)
    assert isinstance(is_whole(data), bool)
