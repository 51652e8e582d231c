"""The file with the secrets of a cluster: encrypted, never replaced, never in clear."""

from __future__ import annotations

import concurrent.futures
from pathlib import Path

import pytest
from tests.support.secrets import SECOND_RECIPIENT
from tests.support.talos_bundles import make_keyring, shared_bundle, write_rule

from stackyard.base.errors import InvalidInputError, StackyardError
from stackyard.secrets.base import SecretsLockedError
from stackyard.talosconfig.bundle import SecretsBundle, write_bundle
from stackyard.talosconfig.bundle_file import (
    BundleExistsError,
    BundleInClearError,
    BundleMissingError,
    check_key,
    create_bundle,
    find_bundle,
    import_bundle,
    load_bundle,
)


def clear_text(folder: Path) -> list[Path]:
    """Return the files of a folder that show a secret of the shared bundle, or a key."""
    hides = shared_bundle().redactor().hides
    return [
        path
        for path in folder.rglob("*")
        if path.is_file() and (hides(path.read_text()) or "PRIVATE KEY" in path.read_text())
    ]


def keep_shared(folder: Path) -> None:
    """Put the shared bundle into a folder: a new one takes its time."""
    write_rule(folder)
    source = folder / "secrets.yaml"
    source.write_text(write_bundle(shared_bundle()))
    import_bundle(source, folder, make_keyring(folder))
    source.unlink()


def test_a_created_bundle_is_encrypted_and_read_back(tmp_path: Path) -> None:
    write_rule(tmp_path)
    keyring = make_keyring(tmp_path)
    created = create_bundle(tmp_path, keyring)
    assert load_bundle(tmp_path, keyring) == created
    text = (tmp_path / "talos/talsecret.sops.yaml").read_text()
    assert "ENC[AES256_GCM" in text
    assert not created.redactor().hides(text)
    assert [path.name for path in (tmp_path / "talos").iterdir()] == ["talsecret.sops.yaml"]


def test_an_existing_bundle_is_never_replaced(tmp_path: Path) -> None:
    write_rule(tmp_path)
    keyring = make_keyring(tmp_path)
    source = tmp_path / "secrets.yaml"
    source.write_text(write_bundle(shared_bundle()))
    assert import_bundle(source, tmp_path, keyring) == shared_bundle()
    before = (tmp_path / "talos/talsecret.sops.yaml").read_bytes()
    with pytest.raises(BundleExistsError):
        create_bundle(tmp_path, keyring)
    with pytest.raises(BundleExistsError):
        import_bundle(source, tmp_path, keyring)
    assert (tmp_path / "talos/talsecret.sops.yaml").read_bytes() == before


def test_a_missing_age_key_stops_before_anything_is_made(tmp_path: Path) -> None:
    write_rule(tmp_path)
    keyring = make_keyring(tmp_path, has_key=False)
    with pytest.raises(SecretsLockedError):
        check_key(tmp_path, keyring)
    with pytest.raises(SecretsLockedError):
        create_bundle(tmp_path, keyring)
    assert not (tmp_path / "talos").exists()
    check_key(tmp_path, make_keyring(tmp_path))


def test_a_bundle_that_only_others_can_read_is_not_made(tmp_path: Path) -> None:
    write_rule(tmp_path, SECOND_RECIPIENT)
    with pytest.raises(SecretsLockedError):
        create_bundle(tmp_path, make_keyring(tmp_path))
    assert not (tmp_path / "talos").exists()


def test_an_existing_bundle_needs_its_key(tmp_path: Path) -> None:
    keep_shared(tmp_path)
    with pytest.raises(SecretsLockedError):
        check_key(tmp_path, make_keyring(tmp_path, has_key=False))
    with pytest.raises(SecretsLockedError):
        load_bundle(tmp_path, make_keyring(tmp_path, has_key=False))


def test_nobody_to_encrypt_for_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StackyardError) as caught:
        create_bundle(tmp_path, make_keyring(tmp_path))
    assert caught.value.code == "E-SOPS-RECIPIENT"
    assert not (tmp_path / "talos").exists()


def test_a_bundle_of_topf_is_found_and_two_bundles_are_refused(tmp_path: Path) -> None:
    keep_shared(tmp_path)
    keyring = make_keyring(tmp_path)
    own, topf = tmp_path / "talos/talsecret.sops.yaml", tmp_path / "talos/secrets.sops.yaml"
    own.rename(topf)
    assert find_bundle(tmp_path) == topf
    load_bundle(tmp_path, keyring)
    own.write_bytes(topf.read_bytes())
    with pytest.raises(BundleExistsError, match=r"secrets\.sops\.yaml"):
        load_bundle(tmp_path, keyring)


def test_a_bundle_in_clear_is_refused_and_a_missing_one_named(tmp_path: Path) -> None:
    keyring = make_keyring(tmp_path)
    with pytest.raises(BundleMissingError):
        load_bundle(tmp_path, keyring)
    (tmp_path / "talos").mkdir()
    (tmp_path / "talos/talsecret.sops.yaml").write_text(write_bundle(shared_bundle()))
    with pytest.raises(BundleInClearError):
        load_bundle(tmp_path, keyring)


def test_a_damaged_source_is_named_by_line_and_not_imported(tmp_path: Path) -> None:
    write_rule(tmp_path)
    source = tmp_path / "secrets.yaml"
    source.write_text(write_bundle(shared_bundle()).replace("bootstraptoken:", "bootstrap_token:"))
    with pytest.raises(InvalidInputError) as caught:
        import_bundle(source, tmp_path, make_keyring(tmp_path))
    lines = {one.kind.code: one.where.line for one in caught.value.diagnostics if one.where}
    assert lines == {"E-TALOS-SECRETS-UNKNOWN": 5, "E-TALOS-SECRETS-MISSING": 5}
    assert not (tmp_path / "talos").exists()


def test_only_the_source_of_an_import_is_in_clear(tmp_path: Path) -> None:
    write_rule(tmp_path)
    source = tmp_path / "secrets.yaml"
    source.write_text(write_bundle(shared_bundle()))
    import_bundle(source, tmp_path, make_keyring(tmp_path))
    assert clear_text(tmp_path) == [source]


def test_of_two_that_create_at_once_one_bundle_stays(tmp_path: Path) -> None:
    write_rule(tmp_path)

    def create(_: int) -> SecretsBundle | None:
        try:
            return create_bundle(tmp_path, make_keyring(tmp_path))
        except BundleExistsError:
            return None

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        created = {one for one in pool.map(create, range(2)) if one is not None}
    assert created == {load_bundle(tmp_path, make_keyring(tmp_path))}
