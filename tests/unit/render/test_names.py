"""Names of resources: readable, from the key alone, never the same for two keys; old states follow."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.desired.test_desired import FULL

from stackyard.desired import Desired
from stackyard.render.legacy_names import find_renamed
from stackyard.render.names import label
from stackyard.render.references import BRIDGE, FILE, SUBNET, VM

KEYS = st.from_regex(r"\A[A-Za-z0-9][A-Za-z0-9_./@-]{0,12}\Z")
# Texts of the few characters that names are made of, where two are most likely to meet.
CLOSE = st.text("abx_-./@012345", max_size=12)
PIECES = st.sampled_from(
    ["image", "user", "data", "user_data", "_", "/", "@", ".", "-", "x2e", "_x2f", "web", "12"]
)


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("web", "web"),
        ("web-2", "web-2"),
        ("web/user_data", "web_user_data"),
        ("web-2/vendor_data", "web-2_vendor_data"),
        ("web.home.arpa/user_data", "web_home_arpa_x2e_user_data"),
        ("image/debian-12", "image_debian-12"),
        ("image/debian-12@pve2", "image_debian-12_pve2"),
        ("debian-12", "debian-12"),
        ("debian_12", "debian_12"),
        ("debian.12", "debian_12_x2e"),
        ("web_user_data", "web_user_data_x5f"),
        ("web.home.arpa", "web_home_arpa_x2e"),
        ("100", "_100"),
    ],
)
def test_names_are_readable(key: str, name: str) -> None:
    assert label(key) == name


def test_keys_that_look_like_names_of_others_stay_apart() -> None:
    tricky = [
        *("a/b", "a_x2f_b", "a_x5f_x2f_b", "a.b", "a_b", "a-b", "a_xb", "1a", "_1a", "a1", ".1a", "1a."),
        *("web/user_data", "web_user_data", "web/user/data", "web.user_data", "a/user_data/user_data"),
        *("image/a@b", "image/a_b", "image_a_b", "image/a/b", "image/a_user@data", "image_a/user_data"),
        *(
            ".5.",
            "5.",
            "_5_",
            "a.b.c",
            "a_b_c",
            "a/b/c",
            "a_x2e",
            "a.x2e",
            "a_x2e_x2e",
            "a",
            "",
            "_",
            "__",
            "-",
            "_-",
            "k\u00e4se",
            "k\u00f6se",
            "\ud800",
        ),
    ]
    assert all(label(one) != label(other) for one, other in itertools.combinations(tricky, 2))


@given(CLOSE | st.lists(PIECES, max_size=6).map("".join), CLOSE | st.lists(PIECES, max_size=6).map("".join))
def test_no_two_keys_have_one_name(one: str, other: str) -> None:
    assert (label(one) == label(other)) is (one == other)


@given(st.lists(KEYS, min_size=2, max_size=20, unique=True))
def test_no_two_keys_share_a_label_and_every_label_is_a_name(keys: list[str]) -> None:
    labels = [label(key) for key in keys]
    assert len(set(labels)) == len(keys)
    assert all(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]*", found) for found in labels)


def test_common_keys_are_their_own_labels() -> None:
    assert [label(key) for key in ("web", "web_1", "kube-01")] == ["web", "web_1", "kube-01"]


@given(st.text())
def test_every_name_is_one_for_the_engine(key: str) -> None:
    assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]*", label(key))


def test_addresses_of_earlier_versions_follow() -> None:
    existing = {
        f"{VM}.web",
        f"{FILE}.web_x2f_user_data",
        f"{BRIDGE}.pve1_x2f_vmbr1",
        f"{SUBNET}.vnet1_x2f_198_x2e_51_x2e_100_x2e_0_x2f_24",
        f"{FILE}.somebody_x2f_else",
    }
    desired = Desired.model_validate(FULL)
    subnet = desired.subnets[0]
    assert (subnet.vnet, subnet.cidr) == ("vnet1", "198.51.100.0/24")
    found = find_renamed(desired, existing)
    assert found == {
        f"{FILE}.web_x2f_user_data": f"{FILE}.web_user_data",
        f"{BRIDGE}.pve1_x2f_vmbr1": f"{BRIDGE}.pve1_vmbr1",
        f"{SUBNET}.vnet1_x2f_198_x2e_51_x2e_100_x2e_0_x2f_24": f"{SUBNET}.vnet1_198-51-100-0-24",
    }
    # What is there under its present name stays, whatever else is.
    assert find_renamed(desired, existing | set(found.values())) == {}
