"""What programs write into a site keeps its comments and order, and is never something the site refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.site import KEY, KEY_2, TOKEN, write_site

from stackyard.secrets import create_sops_file, new_identity, read_secrets
from stackyard.sources.site import Site
from stackyard.sources.site.edit import NotWrittenError, merge_host, put_api_token, put_ssh_key, write_node

# Everything that editing by lines corrupted: a name that is a key elsewhere, inline maps, comments.
SECRETS = f"""\
# All secrets of the site
api_tokens: {{}}  # filled by the installer
passwords:
  # of root
  vm_root: $6$salt$hash
ssh_keys:
  father: {KEY}   # the same name as a node
auth: {{site_token: x-x-x-x, node_tokens: {{}}}}
"""
OTHER = "root@pam!tofu=99999999-2222-3333-4444-555555555555"


def test_a_token_is_added_beside_a_key_of_the_same_name_and_comments_stay(tmp_path: Path) -> None:
    write_site(tmp_path, secrets=SECRETS, v2__specs__base=None)
    assert put_api_token(tmp_path, "father", TOKEN)
    assert put_api_token(tmp_path, "pve", TOKEN)
    text = (tmp_path / "secrets.yaml").read_text()
    for comment in (
        "# All secrets of the site",
        "# filled by the installer",
        "# of root",
        "# the same name as a node",
    ):
        assert comment in text
    site = Site.load(tmp_path)
    assert site.secret_values.api_tokens == {"father": TOKEN, "pve": TOKEN}
    assert site.secret_values.ssh_keys == {"father": KEY}
    assert site.secret_values.auth.site_token == "x-x-x-x"


def test_a_token_is_replaced_and_nothing_else(tmp_path: Path) -> None:
    write_site(tmp_path)
    before = (tmp_path / "secrets.yaml").read_text().splitlines()
    assert put_api_token(tmp_path, "father", OTHER)
    after = (tmp_path / "secrets.yaml").read_text().splitlines()
    assert [line for line in after if line not in before] == [f"  father: {OTHER}"]
    assert len(before) == len(after)
    assert not put_api_token(tmp_path, "father", OTHER)


def test_a_key_is_added_to_encrypted_secrets_which_stay_encrypted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    public, private = new_identity()
    monkeypatch.setenv("SOPS_AGE_KEY", private)
    path = tmp_path / "secrets.yaml"
    create_sops_file(path, SECRETS.encode(), [public])
    assert put_ssh_key(tmp_path, "ops", KEY_2)
    assert KEY_2 not in path.read_text()
    assert read_secrets(path).data["ssh_keys"]["ops"] == KEY_2


@pytest.mark.parametrize("token", ["hunter2", "root@pam=hunter2", "", "root@pam!t=a b"])
def test_what_is_no_token_is_not_written_and_not_quoted(token: str, tmp_path: Path) -> None:
    write_site(tmp_path)
    before = (tmp_path / "secrets.yaml").read_bytes()
    with pytest.raises(NotWrittenError) as caught:
        put_api_token(tmp_path, "father", token)
    assert "hunter2" not in caught.value.detail
    assert (tmp_path / "secrets.yaml").read_bytes() == before


def test_without_secrets_a_file_is_made_that_is_encrypted_for_the_user(tmp_path: Path) -> None:
    root = write_site(tmp_path, secrets=None)
    assert put_api_token(root, "father", TOKEN)
    text = (root / "secrets.yaml").read_text()
    assert "sops:" in text
    assert TOKEN not in text
    assert read_secrets(root / "secrets.yaml").data == {"api_tokens": {"father": TOKEN}}


def test_fields_are_merged_into_a_host_file_without_a_loss_and_overwritten_only_on_request(
    tmp_path: Path,
) -> None:
    write_site(tmp_path)
    path = tmp_path / "hosts" / "father.yaml"
    before = path.read_text()
    wanted = {"host": "father", "ip": "192.0.2.61", "access": {"ssh_user": "root"}}
    merged = merge_host(tmp_path, "father", wanted, overwrites=False)
    assert (merged.is_new, merged.changed, merged.kept) == (False, ("ip",), ("access",))
    assert path.read_text() == before + "ip: 192.0.2.61\n"
    merged = merge_host(tmp_path, "father", wanted, overwrites=True)
    assert (merged.changed, merged.kept) == (("access",), ())
    assert "ssh_user: root" in path.read_text()
    assert merge_host(tmp_path, "father", wanted, overwrites=True).changed == ()


def test_a_host_that_would_not_be_valid_is_not_written(tmp_path: Path) -> None:
    write_site(tmp_path)
    with pytest.raises(NotWrittenError, match="of the host 'new'"):
        merge_host(tmp_path, "new", {"ip": "300.1.1.1"}, overwrites=False)
    assert not (tmp_path / "hosts" / "new.yaml").exists()


def test_a_node_file_is_made_and_then_changed_with_its_comments_kept(tmp_path: Path) -> None:
    write_site(tmp_path)
    put_api_token(tmp_path, "mother", TOKEN)
    path = write_node(tmp_path, "mother", {"api_endpoint": "https://192.0.2.9:8006", "datastore": "local"})
    assert "mother" in Site.load(tmp_path).nodes
    path.write_text("# the second one\n" + path.read_text() + "ip: 192.0.2.9  # fixed\n")
    write_node(tmp_path, "mother", {"datastore": "tank"})
    assert path.read_text() == (
        "# the second one\napi_endpoint: https://192.0.2.9:8006\ndatastore: tank\nip: 192.0.2.9  # fixed\n"
    )


def test_a_node_that_would_not_be_valid_is_not_written(tmp_path: Path) -> None:
    write_site(tmp_path)
    with pytest.raises(NotWrittenError, match="datastore"):
        write_node(tmp_path, "mother", {"api_endpoint": "https://192.0.2.9:8006"})
    with pytest.raises(NotWrittenError, match="api_endpoint"):
        write_node(tmp_path, "father", {"api_endpoint": "nowhere"})
    assert not (tmp_path / "nodes" / "mother.yaml").exists()
    assert Site.load(tmp_path).nodes["father"].model.api_endpoint == "https://10.0.12.61:8006"
