from __future__ import annotations

from pathlib import Path

import pytest

from stackyard.base.errors import FileError
from stackyard.upgrades.addresses import ProviderAddress
from stackyard.upgrades.cli_config import CliConfigError, Method, read_cli_config

TEXT = """
plugin_cache_dir = "/tmp/cache"

provider_installation {
  dev_overrides {
    "acme/dev" = "/home/me/dev"
  }
  filesystem_mirror {
    path    = "/srv/mirror"
    include = ["acme/*", "registry.test/*/*"]
    exclude = ["acme/other"]
  }
  network_mirror {
    url = "https://mirror.test/providers/"
  }
  oci_mirror {
    repository_template = "oci.test/${hostname}/${namespace}/${type}"
    include             = ["*/*/*"]
  }
  direct {}
}

host "registry.test" {
  services = {
    "providers.v1" = "https://elsewhere.test/p/"
  }
}

credentials "registry.test" {
  token = "t0ken-in-the-file"
}

oci_credentials "oci.test/private" {
  username = "me"
  password = "pass"
}
"""
HOST = "registry.opentofu.org"


def test_everything_that_says_where_versions_are_is_read(tmp_path: Path) -> None:
    path = tmp_path / "tofurc"
    path.write_text(TEXT)
    found = read_cli_config(path, {"TF_TOKEN_app_my__corp_test": "abc"})
    assert found.methods == (
        Method(
            kind="filesystem_mirror",
            place="/srv/mirror",
            include=("acme/*", "registry.test/*/*"),
            exclude=("acme/other",),
        ),
        Method(kind="network_mirror", place="https://mirror.test/providers/"),
        Method(kind="oci_mirror", place="oci.test/${hostname}/${namespace}/${type}", include=("*/*/*",)),
        Method(kind="direct"),
    )
    assert found.overrides == {"acme/dev": "/home/me/dev"}
    assert found.services == {"registry.test": {"providers.v1": "https://elsewhere.test/p/"}}
    assert found.tokens == {"registry.test": "t0ken-in-the-file", "app.my-corp.test": "abc"}
    assert found.login("oci.test", "private/x") == "Basic bWU6cGFzcw=="
    assert found.login("oci.test", "privateer") is None
    assert not any(word in repr(found) for word in ("t0ken", "abc", "bWU6"))


@pytest.mark.parametrize(
    ("address", "is_served"),
    [
        (ProviderAddress(HOST, "acme", "thing"), True),
        (ProviderAddress(HOST, "acme", "other"), False),
        (ProviderAddress("registry.test", "acme", "other"), True),
        (ProviderAddress(HOST, "hashicorp", "aws"), False),
        (ProviderAddress("elsewhere.test", "acme", "thing"), False),
    ],
)
def test_patterns_name_providers(address: ProviderAddress, is_served: bool) -> None:
    method = Method(kind="direct", include=("acme/*", "registry.test/*/*"), exclude=("acme/other",))
    assert method.serves(address, HOST) is is_served


def test_a_broken_file_is_an_error_and_quotes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "tofurc"
    path.write_text('credentials "x" { token = "s3cret"\n')
    with pytest.raises(CliConfigError) as caught:
        read_cli_config(path, {})
    assert "s3cret" not in str(caught.value)
    with pytest.raises(FileError):
        read_cli_config(tmp_path / "none", {})


def test_what_tofu_login_saved_is_used(home: Path) -> None:
    folder = home / ".terraform.d"
    folder.mkdir()
    (folder / "credentials.tfrc.json").write_text('{"credentials": {"app.test": {"token": "saved"}}}')
    assert read_cli_config(None, {}).tokens == {"app.test": "saved"}
    (folder / "credentials.tfrc.json").write_text("[]")
    assert read_cli_config(None, {}).tokens == {}
