"""Section configuration: which options a type takes, digests, and how changes fail."""

from __future__ import annotations

import pytest

from pvelab.server.problems import PveError, bad_parameter, not_permitted
from pvelab.world.sections import Kind, SectionFile, check_digest, prefix_errors
from pvelab.world.store import Store

KIND = Kind(
    name="vlan",
    required=frozenset(("bridge",)),
    optional=frozenset(("mtu", "nodes", "target")),
    fixed=frozenset(("target",)),
)


def test_a_new_object_has_its_type_and_its_options() -> None:
    assert KIND.validate({"bridge": "vmbr0", "mtu": 1400}, create=True) == {
        "type": "vlan",
        "bridge": "vmbr0",
        "mtu": 1400,
    }


@pytest.mark.parametrize(
    ("given", "create", "text"),
    [
        ({"mtu": 1400}, True, "missing value for required option 'bridge'"),
        ({"bridge": "a", "tag": 1}, True, "unexpected property 'tag'"),
        ({"bridge": "a\nb"}, True, "property contains a line feed"),
        ({"target": "x"}, False, "can't change value of fixed parameter 'target'"),
    ],
)
def test_options_that_a_type_does_not_take_are_refused(
    given: dict[str, object], create: bool, text: str
) -> None:
    with pytest.raises(PveError, match=text):
        KIND.validate(given, create=create)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("tag", "no such option 'tag'"),
        ("bridge", "unable to delete required option 'bridge'"),
        ("target", "unable to delete fixed option 'target'"),
        ("mtu", "cannot set and delete property 'mtu' at the same time!"),
    ],
)
def test_options_that_must_stay_are_not_removed(name: str, text: str) -> None:
    with pytest.raises(PveError, match=text):
        KIND.without({"type": "vlan", "bridge": "a"}, [name], {"mtu": 1400})


def test_removing_what_is_not_set_changes_nothing() -> None:
    section = {"type": "vlan", "bridge": "a"}
    assert KIND.without(section, ["nodes"], {}) == section


def test_the_digest_is_that_of_the_whole_file_and_empty_texts_are_not_kept() -> None:
    store = Store()
    file = SectionFile(store, "zones")
    with store.transaction():
        file.put("a", {"type": "vlan", "comment": ""})
    digest = file.digest
    assert file.get("a") == {"type": "vlan"}
    with store.transaction():
        file.put("b", {"type": "vlan"})
    file.check_digest(None)
    with pytest.raises(PveError, match="detected modified configuration"):
        file.check_digest(digest)
    with store.transaction():
        file.remove("b")
    file.check_digest(digest)


def test_a_caller_without_a_digest_is_not_held_to_one() -> None:
    check_digest("current", None)
    check_digest("current", "current")
    with pytest.raises(PveError):
        check_digest("current", "other")


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        (PveError("in use"), "change failed: in use"),
        (bad_parameter("tag", "taken"), "change failed: 400 Parameter verification failed.\ntag: taken"),
        (not_permitted("/sdn, SDN.Use"), "change failed: 403 Permission check failed (/sdn, SDN.Use)"),
    ],
)
def test_a_failed_change_is_a_plain_error_that_tells_everything(problem: PveError, text: str) -> None:
    with pytest.raises(PveError) as failed, prefix_errors("change failed"):
        raise problem
    assert (failed.value.text, failed.value.status, failed.value.errors) == (text, 500, None)
