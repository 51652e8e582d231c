"""Encryption at rest: nothing readable without the key, nothing exchangeable, keys replaced while in use."""

from __future__ import annotations

import pytest

from stackyard.clients.objects import ABSENT, ANYTHING, MemoryObjects, StoreDamagedError
from stackyard.clients.objects.sealed import (
    KeyMissingError,
    KeyRing,
    MasterKey,
    MasterKeyError,
    SealedObjects,
    make_master_key,
    reseal,
)


def ring(*keys: str) -> KeyRing:
    return KeyRing(tuple(MasterKey.from_text(key) for key in keys))


OLD, NEW = make_master_key(), make_master_key()


def test_what_is_stored_shows_nothing_and_differs_each_time() -> None:
    inner = MemoryObjects()
    sealed = SealedObjects(inner, ring(OLD))
    sealed.put("x", b"a very secret state", expect=ABSENT, before={"y": b"a very secret state"})
    stored = [inner.get(key) for key in ("x", "y")]
    assert all(found is not None and b"secret" not in found.data for found in stored)
    assert stored[0] is not None
    assert stored[1] is not None
    assert stored[0].data[-35:] != stored[1].data[-35:]
    found = sealed.get("y")
    assert found is not None
    assert found.data == b"a very secret state"


def test_a_changed_byte_and_a_moved_object_are_noticed() -> None:
    inner = MemoryObjects()
    sealed = SealedObjects(inner, ring(OLD))
    sealed.put("x", b"data", expect=ABSENT)
    found = inner.get("x")
    assert found is not None
    inner.put("moved", found.data, expect=ANYTHING)
    for place in (4 + 8, -1):
        changed = bytearray(found.data)
        changed[place] ^= 1
        inner.put(f"changed{place}", bytes(changed), expect=ANYTHING)
    inner.put("short", found.data[:20], expect=ANYTHING)
    for key in ("moved", "changed12", "changed-1", "short"):
        with pytest.raises(StoreDamagedError):
            sealed.get(key)


def test_keys_are_replaced_while_the_store_is_in_use() -> None:
    inner = MemoryObjects()
    sealed = SealedObjects(inner, ring(OLD))
    for number in range(7):
        sealed.put(f"k{number}", str(number).encode(), expect=ABSENT)
    sealed.use(ring(NEW, OLD))
    sealed.put("k0", b"new", expect=ANYTHING)
    assert reseal(sealed, page=3) == 6
    assert reseal(sealed) == 0
    only_new = SealedObjects(inner, ring(NEW))
    assert [found and found.data for found in map(only_new.get, ("k0", "k6"))] == [b"new", b"6"]
    with pytest.raises(KeyMissingError, match=MasterKey.from_text(NEW).id):
        SealedObjects(inner, ring(OLD)).get("k3")


def test_a_store_that_is_not_encrypted_is_not_read_as_if_it_were() -> None:
    inner = MemoryObjects()
    inner.put("x", b"plain", expect=ABSENT)
    with pytest.raises(KeyMissingError, match="not encrypted"):
        SealedObjects(inner, ring(OLD)).get("x")


@pytest.mark.parametrize("text", ["", "short", "AAAA", "x" * 64, "=" * 44])
def test_a_key_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(MasterKeyError) as caught:
        KeyRing.from_text(text)
    assert not text or text not in caught.value.detail


def test_keys_are_read_from_lines_and_lists_in_base64_and_hexadecimal() -> None:
    hexadecimal = "0f" * 32
    assert KeyRing.from_text(f"{NEW}\n{OLD},{hexadecimal}\n") == ring(NEW, OLD, hexadecimal)
    assert OLD not in repr(ring(OLD))
