"""talosconfig files."""

from __future__ import annotations

import pytest
import yaml
from tests.support.talos_bundles import shared_bundle

from stackyard.talosconfig.bundle import issue_admin
from stackyard.talosconfig.client_config import (
    ClientConfigError,
    make_client_config,
    merge_client_configs,
    parse_client_config,
    write_client_config,
)

ENDPOINTS = ("10.0.1.1", "10.0.1.2")


def test_a_written_talosconfig_is_read_back_as_the_same() -> None:
    bundle = shared_bundle()
    config = make_client_config("home", ENDPOINTS, bundle, issue_admin(bundle), nodes=("10.0.1.1",))
    text = write_client_config(config)
    assert parse_client_config(text, "talosconfig") == config
    assert list(yaml.safe_load(text)["contexts"]["home"]) == ["endpoints", "nodes", "ca", "crt", "key"]
    assert "PRIVATE" not in repr(config)


def test_a_merge_keeps_other_contexts_and_replaces_its_own() -> None:
    bundle = shared_bundle()
    old = make_client_config("home", ("10.9.9.9",), bundle, issue_admin(bundle))
    other = make_client_config("work", ("10.8.8.8",), bundle, issue_admin(bundle))
    new = make_client_config("home", ENDPOINTS, bundle, issue_admin(bundle))
    merged = merge_client_configs(merge_client_configs(old, other), new)
    assert merged.context == "home"
    assert sorted(merged.contexts) == ["home", "work"]
    assert merged.contexts["home"].endpoints == ENDPOINTS


@pytest.mark.parametrize("text", ["", "[", "contexts: 1", "contexts: {a: 1}", "contexts: {a: {ca: '#'}}"])
def test_what_is_no_talosconfig_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(ClientConfigError) as caught:
        parse_client_config(text, "talosconfig")
    assert str(caught.value.where).startswith("talosconfig")
