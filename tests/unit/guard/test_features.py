"""The features of a token cover what the guard asks for, and each privilege has its reason."""

from __future__ import annotations

import inspect
import re

from stackyard.guard import rights
from stackyard.guard.features import DEFAULT_FEATURES, Feature, list_privileges


def test_every_privilege_that_the_guard_asks_for_belongs_to_a_feature() -> None:
    asked = set(
        re.findall(r'"((?:VM|Sys|Datastore|SDN|Pool|Mapping)\.[A-Za-z.]+)"', inspect.getsource(rights))
    )
    covered = {one.privilege for one in list_privileges(Feature)}
    # Another way to the same, which grants more.
    assert asked - covered == {"VM.GuestAgent.Unrestricted"}


def test_reading_is_part_of_every_feature_and_changes_nothing() -> None:
    read = {one.privilege for one in list_privileges((Feature.READ,))}
    assert all(name.endswith((".Audit", ".Monitor")) for name in read)
    assert read <= {one.privilege for one in list_privileges((Feature.HA,))}


def test_the_default_may_not_change_the_cluster_or_its_users() -> None:
    usual = {one.privilege for one in list_privileges(DEFAULT_FEATURES)}
    assert not {"Sys.Modify", "Sys.Console", "SDN.Allocate", "Permissions.Modify", "User.Modify"} & usual


def test_a_privilege_that_a_version_does_not_know_is_left_out() -> None:
    known = {one.privilege for one in list_privileges(Feature)} - {"VM.Monitor"}
    assert "VM.Monitor" not in {one.privilege for one in list_privileges(Feature, known)}
