"""The bytes of files: kept once, kept while they are named, gone afterwards."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from pvelab.world.storage.blobs import Blob, Blobs
from pvelab.world.storage.download import Fetcher, stand_in_size, url_filename
from pvelab.world.store import Store
from stackyard.base.errors import FileError


def name(store: Store, key: str, blob: Blob | None) -> None:
    with store.transaction():
        if blob is None:
            store.delete("volumes", key)
        else:
            store.put("volumes", key, {"sha256": blob.sha256})


def test_bytes_stay_while_one_volume_names_them() -> None:
    store, blobs = Store(), Blobs()
    blobs.follow(store)
    one, same = blobs.put(b"content"), blobs.put(b"content")
    assert one == same == Blob(sha256=hashlib.sha256(b"content").hexdigest(), size=7)
    name(store, "a", one)
    name(store, "b", one)
    name(store, "a", None)
    assert blobs.read(one.sha256) == b"content"
    name(store, "b", None)
    with pytest.raises(FileError):
        blobs.read(one.sha256)
    blobs.close()


def test_a_change_that_is_undone_keeps_the_bytes() -> None:
    store, blobs = Store(), Blobs()
    blobs.follow(store)
    blob = blobs.put(b"content")
    name(store, "a", blob)

    def fail() -> None:
        with store.transaction():
            store.delete("volumes", "a")
            raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011 - it is our own, two lines up
        fail()
    assert blobs.read(blob.sha256) == b"content"
    blobs.close()


async def test_bytes_that_are_taken_over_wait_for_their_volume(tmp_path: Path) -> None:
    store, blobs = Store(), Blobs()
    blobs.follow(store)
    other = blobs.put(b"content")
    name(store, "other", other)
    source = tmp_path / "upload"
    source.write_bytes(b"content")
    blob = await blobs.adopt(source)
    name(store, "other", None)
    assert blobs.read(blob.sha256) == b"content"
    assert not source.exists()
    name(store, "mine", blob)
    blobs.release(blob)
    assert blobs.read(blob.sha256) == b"content"
    name(store, "mine", None)
    assert not blobs.path(blob.sha256).exists()
    blobs.close()


def test_bytes_that_a_saved_state_holds_stay() -> None:
    store, blobs = Store(), Blobs()
    blobs.follow(store)
    blob = blobs.put(b"content")
    name(store, "a", blob)
    blobs.hold([blob.sha256])
    name(store, "a", None)
    assert blobs.read(blob.sha256) == b"content"
    blobs.close()


def test_a_folder_of_its_own_goes_with_the_lab_and_a_given_one_stays(tmp_path: Path) -> None:
    own, lasting = Blobs(), Blobs(tmp_path / "files")
    folder = own.path(own.put(b"x").sha256).parent
    kept = lasting.path(lasting.put(b"x").sha256)
    own.close()
    lasting.close()
    assert not folder.exists()
    assert kept.read_bytes() == b"x"
    again = Blobs(tmp_path / "files")
    again.follow(Store())
    again.tidy()
    assert not kept.exists()


@pytest.mark.parametrize(
    ("url", "real"),
    [
        ("http://127.0.0.1:8000/x", True),
        ("https://[::1]/x", True),
        ("http://localhost/x", True),
        ("http://files.localhost/x", True),
        ("http://0.0.0.0/x", True),
        ("https://example.org/x", False),
        ("http://203.0.113.7/x", False),
        ("http://224.0.0.1/x", False),
        ("http://localhost.example.org/x", False),
        ("http://user@127.0.0.1@example.org/x", False),
    ],
)
def test_only_this_machine_is_really_asked_unless_told_otherwise(url: str, real: bool) -> None:
    assert Fetcher().is_real(url) is real
    assert Fetcher(anywhere=True).is_real(url)


def test_a_stand_in_is_always_the_same_and_as_large_as_its_kind() -> None:
    image, archive = "https://example.org/a/noble.img", "https://example.org/a/ubuntu_amd64.tar.zst"
    assert stand_in_size(image) == stand_in_size(image) > 400 * 2**20
    assert 80 * 2**20 <= stand_in_size(archive) < 200 * 2**20
    assert url_filename("https://example.org/a/b.iso?x=/1") == "b.iso"
    assert url_filename("https://example.org/a/") is None
