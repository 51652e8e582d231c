"""`cluster configure`: only what changed is written, no edit is lost, and no secret is ever in clear."""

from __future__ import annotations

import dataclasses
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.support.clusters import node, write_cluster
from tests.support.resolved_clusters import SECRETS, make_cluster, make_node

from stackyard.base import files, yamledit
from stackyard.path.clusters.configure import (
    HandEditError,
    check_current,
    configure,
    plan_configuration,
)
from stackyard.path.clusters.credentials import PlainSecretsError, read_engine_secrets
from stackyard.path.clusters.image_lock import PinnedImage, add_pin
from stackyard.path.clusters.images import list_images
from stackyard.path.clusters.keys import make_keyring
from stackyard.path.clusters.record import RECORD_NAME, RecordError, take_fingerprint
from stackyard.path.clusters.secret_files import ClearSecretError, UnknownRecipientError, list_tokens
from stackyard.path.clusters.sops_rules import AgeKeyMissingError
from stackyard.secrets import (
    SecretsLockedError,
    change_secrets,
    create_sops_file,
    new_identity,
    read_secrets,
)
from stackyard.secrets.sops.age import recipient_of
from stackyard.sources.cluster.load import load_cluster
from stackyard.sources.cluster.model import Cluster

SEALED = "infrastructure/secrets.sops.yaml"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return an empty repository with an age key."""
    top = tmp_path / "repository"
    (top / ".git").mkdir(parents=True)
    (top / "age.key").write_text(f"{new_identity()[1]}\n")
    return top


def snapshot(folder: Path) -> dict[str, bytes]:
    found = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def with_secrets(cluster: Cluster, **changes: str) -> Cluster:
    return dataclasses.replace(cluster, secrets={**cluster.secrets, **changes})


def set_value(folder: Path, name: str, value: str) -> None:
    """Edit an encrypted value, as `stackyard secrets edit` does."""
    change_secrets(folder / SEALED, [yamledit.Set((name,), value)], make_keyring(folder))


def test_everything_is_written_once_and_then_nothing(folder: Path) -> None:
    cluster = make_cluster(folder)
    assert check_current(cluster)
    report = configure(cluster)
    assert {SEALED, ".sops.yaml", ".gitignore", "Taskfile.yaml"} <= set(report.written)
    before = snapshot(folder)
    assert not configure(cluster).has_changes
    assert snapshot(folder) == before
    assert not plan_configuration(cluster).changes
    assert check_current(cluster) == ()


def test_secrets_are_encrypted_and_only_a_changed_value_gets_another_form(folder: Path) -> None:
    cluster = make_cluster(folder)
    configure(cluster)
    everything = b"".join(data for name, data in snapshot(folder).items() if name != "age.key")
    assert not [value for value in SECRETS.values() if value != "terraform" and value.encode() in everything]
    before = (folder / SEALED).read_text().splitlines()
    assert configure(with_secrets(cluster, tfstate_password="another-one")).written == (SEALED,)
    after = (folder / SEALED).read_text().splitlines()
    changed = {old.strip().split(":")[0] for old, new in zip(before, after, strict=True) if old != new}
    assert changed - {"lastmodified"} == {"tfstate_password", "mac"}
    assert read_secrets(folder / SEALED, make_keyring(folder)).data["tfstate_password"] == "another-one"


def test_a_value_that_was_rotated_in_the_file_is_not_overwritten(folder: Path) -> None:
    cluster = make_cluster(folder)
    configure(cluster)
    set_value(folder, "tfstate_password", "rotated")
    before = snapshot(folder)
    with pytest.raises(HandEditError, match="tfstate_password"):
        configure(cluster)
    # Another value of the input is no reason to lose it, either.
    with pytest.raises(HandEditError, match="tfstate_password"):
        configure(with_secrets(cluster, proxmox_api_token_secret="newer"))
    assert snapshot(folder) == before
    assert not configure(with_secrets(cluster, tfstate_password="rotated")).has_changes
    assert configure(cluster, overwrite=[SEALED]).written == (SEALED,)


def test_a_value_that_somebody_added_to_the_file_is_not_removed(folder: Path) -> None:
    cluster = make_cluster(folder)
    configure(cluster)
    set_value(folder, "of_my_own", "x")
    with pytest.raises(HandEditError, match="of_my_own"):
        configure(with_secrets(cluster, tfstate_password="another-one"))


def test_an_edited_file_is_refused_with_the_list_and_nothing_is_written(folder: Path) -> None:
    cluster = make_cluster(folder)
    configure(cluster)
    for name in ("main.tf", "outputs.tf"):
        path = folder / "infrastructure/tofu" / name
        path.write_text(f"{path.read_text()}# mine\n")
    newer = make_cluster(folder, nodes=1)
    before = snapshot(folder)
    with pytest.raises(HandEditError) as caught:
        configure(newer)
    assert re.findall(r"tofu/(\w+)\.tf: it was edited", caught.value.detail) == ["main", "outputs"]
    assert snapshot(folder) == before
    assert check_current(newer) == ("tofu/main.tf", "tofu/outputs.tf", "tofu/terraform.tfvars")
    report = configure(newer, overwrite=["tofu/*.tf"])
    assert len(report.written) == 3


def test_files_of_others_stay_and_what_is_no_longer_generated_goes(folder: Path) -> None:
    own = folder / "templates/config/infrastructure/tofu/extra.tf.j2"
    own.parent.mkdir(parents=True)
    own.write_text("# #{ cluster_name }#\n")
    cluster = make_cluster(folder)
    configure(cluster)
    extra = folder / "infrastructure/tofu/extra.tf"
    assert extra.read_text() == "# home\n"
    mine = folder / "infrastructure/tofu/mine.tf"
    mine.write_text("# mine\n")
    own.unlink()
    assert check_current(cluster) == ("tofu/extra.tf",)
    assert configure(cluster).removed == ("infrastructure/tofu/extra.tf",)
    assert mine.exists()
    secrets = {name: value for name, value in SECRETS.items() if name != "cloudflare_token"}
    assert len(configure(dataclasses.replace(cluster, secrets=secrets)).removed) == 2
    assert not (folder / "kubernetes").exists()


def test_files_that_were_there_before_are_adopted_if_equal_and_refused_if_not(folder: Path) -> None:
    cluster = make_cluster(folder)
    configure(cluster)
    record = folder / "infrastructure" / RECORD_NAME
    before = record.read_bytes()
    record.unlink()
    assert not configure(cluster).has_changes
    assert record.read_bytes() == before
    record.unlink()
    with pytest.raises(HandEditError, match="was not written by stackyard"):
        configure(make_cluster(folder, nodes=1))


def test_a_taskfile_of_the_user_is_left_alone(folder: Path) -> None:
    (folder / "Taskfile.yaml").write_text("version: '3'\n")
    cluster = make_cluster(folder)
    assert "Taskfile.yaml" not in configure(cluster).written
    tasks = folder / ".taskfiles/infrastructure/Taskfile.yaml"
    tasks.write_text("version: '3'\n")
    assert not configure(cluster).has_changes
    assert tasks.read_text() == "version: '3'\n"


def test_taskfiles_of_the_template_are_named_and_replaced_when_the_user_says_so(folder: Path) -> None:
    root, infra = folder / "Taskfile.yaml", folder / ".taskfiles/infrastructure/Taskfile.yaml"
    infra.parent.mkdir(parents=True)
    root.write_text("includes:\n  infra: .taskfiles/infrastructure\n")
    infra.write_text("tasks:\n  plan:\n    cmd: tofu plan -out=tfplan\n")
    cluster = make_cluster(folder)
    unpinned, warning = configure(cluster).warnings
    assert "--overwrite Taskfile.yaml --overwrite .taskfiles/infrastructure/Taskfile.yaml" in warning
    assert "tofu plan" in infra.read_text()
    assert plan_configuration(cluster).warnings == (unpinned, warning)
    report = configure(cluster, overwrite=["Taskfile.yaml", ".taskfiles/*"])
    assert report.written == ("Taskfile.yaml", ".taskfiles/infrastructure/Taskfile.yaml")
    assert report.warnings == (unpinned,)
    assert "stackyard infra plan" in infra.read_text()
    root.write_text(root.read_text() + "# mine, and it runs stackyard\n")
    again = configure(cluster)
    assert (again.written, again.warnings) == ((), (unpinned,))


@pytest.mark.parametrize("previous", ["none", "the-former-passphrase"])
def test_a_former_passphrase_is_named_as_long_as_it_is_accepted(folder: Path, previous: str) -> None:
    cluster = with_secrets(make_cluster(folder), state_encryption_passphrase="the-passphrase-of-now")
    assert len(configure(cluster).warnings) == 1
    rotated = with_secrets(cluster, state_encryption_passphrase_previous=previous)
    assert "Remove it after one apply" in configure(rotated).warnings[1]


def test_images_that_nothing_is_compared_with_are_named_until_they_are_pinned(folder: Path) -> None:
    cluster = make_cluster(folder)
    (warning,) = configure(cluster).warnings
    (name,) = (one.file_name for one in list_images(cluster))
    assert warning.startswith(f"{name} has no recorded SHA-256")
    add_pin(cluster, name, PinnedImage(sha256="0" * 64, size=1, url="https://example.com"))
    assert configure(cluster).warnings == ()
    (folder / "metal").mkdir()
    metal = [make_node(1, vm=None)]
    assert configure(make_cluster(folder / "metal", nodes=metal, proxmox=None)).warnings == ()


def test_a_vm_stays_on_its_host_whichever_node_is_removed_or_host_added(folder: Path) -> None:
    def spread(numbers: list[int], hosts: list[str], **own: str) -> dict[str, str]:
        nodes = [
            node(number, **({"proxmox_node": own[f"k{number}"]} if own.get(f"k{number}") else {}))
            for number in numbers
        ]
        write_cluster(folder, nodes=nodes, proxmox_node=None, proxmox_nodes=hosts)
        cluster = load_cluster(folder)
        configure(cluster)
        return {one.name: one.vm.proxmox_node for one in cluster.nodes if one.vm is not None}

    three = ["pve1", "pve2", "pve3"]
    before = spread([1, 2, 3, 4, 5], three)
    assert before == {"k8s-1": "pve1", "k8s-2": "pve2", "k8s-3": "pve3", "k8s-4": "pve1", "k8s-5": "pve2"}
    after = spread([1, 2, 3, 5], three)
    assert after == {name: host for name, host in before.items() if name != "k8s-4"}
    assert spread([6, 1, 2, 3, 5], ["pve0", *three]) == {"k8s-6": "pve0", **after}
    # A host that is no longer listed keeps nobody, and what a node says itself counts.
    moved = spread([1, 2, 3, 5], ["pve1", "pve3"], k3="pve9")
    assert moved == {"k8s-1": "pve1", "k8s-2": "pve3", "k8s-3": "pve9", "k8s-5": "pve1"}


def test_without_a_key_nothing_is_written(folder: Path) -> None:
    (folder / "age.key").unlink()
    with pytest.raises(AgeKeyMissingError):
        configure(make_cluster(folder))
    (folder / ".sops.yaml").write_text(f"creation_rules:\n  - age: {new_identity()[0]}\n")
    before = snapshot(folder)
    with pytest.raises(SecretsLockedError, match="keys that you do not have"):
        configure(make_cluster(folder))
    assert snapshot(folder) == before


def test_a_secrets_file_that_was_left_in_clear_is_encrypted(folder: Path) -> None:
    cluster = make_cluster(folder)
    configure(cluster)
    plain = read_secrets(folder / SEALED, make_keyring(folder)).data
    (folder / SEALED).write_text("".join(f"{name}: {value!r}\n" for name, value in plain.items()))
    assert configure(cluster).written == (SEALED,)
    assert b"ENC[" in (folder / SEALED).read_bytes()


def test_credentials_in_clear_are_not_used(folder: Path) -> None:
    cluster = make_cluster(folder)
    configure(cluster)
    keyring = make_keyring(folder)
    assert read_engine_secrets(cluster.infrastructure, keyring).values["tfstate_password"]
    (folder / SEALED).write_text("tfstate_password: hunter2hunter2\n")
    with pytest.raises(PlainSecretsError) as raised:
        read_engine_secrets(cluster.infrastructure, keyring)
    assert "hunter2" not in str(raised.value)


def test_rules_and_ignored_files_are_added_without_touching_other_lines(folder: Path) -> None:
    recipient = new_identity()[0]
    keys = (folder / "age.key").read_text()
    own = make_keyring(folder)
    both = f"{recipient_of(own)},{recipient}"
    rules = f"# ours\ncreation_rules:\n  - path_regex: talos/.*   # Talos\n    age: {both}\n"
    (folder / ".sops.yaml").write_text(rules)
    (folder / ".gitignore").write_text("*.key\ninfrastructure/tofu/.terraform.lock.hcl\ntfplan")
    report = configure(make_cluster(folder))
    text = (folder / ".sops.yaml").read_text()
    assert text.startswith(rules)
    assert text.count(f"age: {both}") == 3
    ignored = (folder / ".gitignore").read_text().splitlines()
    assert ignored[:3] == ["*.key", "infrastructure/tofu/.terraform.lock.hcl", "tfplan"]
    assert {"*.tfplan", "*.tfstate*", ".terraform/", "/cluster.yaml"} <= set(ignored)
    assert "age.key" not in ignored
    assert [one for one in report.warnings if ".gitignore:2 keeps .terraform.lock.hcl" in one]
    assert (folder / "age.key").read_text() == keys


@pytest.mark.parametrize("pattern", [r"\.sops\.ya?ml$", "kubernetes/.*", None])
def test_flux_can_read_the_kind_of_each_secret_whatever_rule_comes_first(
    folder: Path, pattern: str | None
) -> None:
    own = recipient_of(make_keyring(folder))
    said = f"path_regex: {pattern}\n    age: {own}" if pattern else f"age: {own}"
    rules = f"creation_rules:\n  # ours\n  - {said}\n  - path_regex: cluster\n    age: {own}\n"
    (folder / ".sops.yaml").write_text(rules)
    cluster = make_cluster(folder)
    configure(cluster)
    (secret, *_) = sorted((folder / "kubernetes").rglob("secret.sops.yaml"))
    lines = secret.read_text().splitlines()
    assert {"apiVersion: v1", "kind: Secret"} <= set(lines)
    assert "cf-token-1" not in secret.read_text()
    assert [line for line in rules.splitlines() if line not in (folder / ".sops.yaml").read_text()] == []
    assert not configure(cluster).has_changes


def test_secrets_that_flux_cannot_read_are_encrypted_again(folder: Path) -> None:
    own = recipient_of(make_keyring(folder))
    assert own is not None
    cluster = make_cluster(folder)
    configure(cluster)
    (secret, *_) = sorted((folder / "kubernetes").rglob("secret.sops.yaml"))
    plain = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: cert-manager-secret\n"
    secret.unlink()
    create_sops_file(secret, f"{plain}stringData:\n  api-token: cf-token-1\n".encode(), [own])
    assert "kind: Secret" not in secret.read_text()
    assert configure(cluster).written == (secret.relative_to(folder).as_posix(),)
    assert "kind: Secret" in secret.read_text()


def test_the_input_may_be_in_git_where_its_secrets_are_not_in_it(folder: Path) -> None:
    configure(make_cluster(folder, are_secrets_in_git=True))
    assert "/cluster.yaml" not in (folder / ".gitignore").read_text()


def test_an_input_without_secrets_needs_no_key_and_stays_in_git(folder: Path) -> None:
    (folder / "age.key").unlink()
    configure(make_cluster(folder, secrets={"tfstate_username": "terraform"}))
    assert "/cluster.yaml" not in (folder / ".gitignore").read_text()
    assert not (folder / SEALED).exists()


def test_a_record_with_marks_of_a_conflict_is_refused(folder: Path) -> None:
    cluster = make_cluster(folder)
    configure(cluster)
    (folder / "infrastructure" / RECORD_NAME).write_text("<<<<<<< HEAD\n")
    with pytest.raises(RecordError):
        configure(cluster)


class Killed(BaseException):
    """The process ends here."""


def kill_after(count: int, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Let a number of writes pass, and no more; return what lets all pass again."""
    real = files.replace_file
    left = [count]

    def write(path: Path, data: bytes, **options: Any) -> None:
        if not left[0]:
            raise Killed
        left[0] -= 1
        real(path, data, **options)

    monkeypatch.setattr(files, "replace_file", write)
    return monkeypatch.undo


@pytest.mark.parametrize("count", range(0, 17, 2))
def test_a_killed_run_is_continued_even_with_other_input(
    count: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = make_cluster(folder)
    restore = kill_after(count, monkeypatch)
    with pytest.raises(Killed):
        configure(cluster)
    restore()
    plain = b"".join(data for name, data in snapshot(folder).items() if name != "age.key")
    assert SECRETS["proxmox_api_token_secret"].encode() not in plain
    newer = with_secrets(make_cluster(folder, nodes=[make_node(1)]), tfstate_password="another-one")
    configure(newer)
    assert check_current(newer) == ()
    assert read_secrets(folder / SEALED, make_keyring(folder)).data["tfstate_password"] == "another-one"


def test_a_file_that_cannot_be_decrypted_stays_and_nothing_is_written(folder: Path) -> None:
    cluster = make_cluster(folder)
    configure(cluster)
    (folder / "age.key").write_text(f"{new_identity()[1]}\n")
    before = snapshot(folder)
    with pytest.raises(SecretsLockedError):
        configure(with_secrets(make_cluster(folder, nodes=1), tfstate_password="another-one"))
    assert snapshot(folder) == before


def test_a_hundred_nodes_are_configured_in_half_a_second(folder: Path) -> None:
    cluster = make_cluster(folder, nodes=100)
    configure(cluster)
    began = time.process_time()
    assert not configure(cluster).has_changes
    assert time.process_time() - began < 0.5


def test_nothing_is_written_through_a_link_that_leads_out_of_the_repository(folder: Path) -> None:
    outside = folder.parent / "outside"
    outside.mkdir()
    (folder / "infrastructure").symlink_to(outside)
    with pytest.raises(HandEditError, match="out of the repository"):
        configure(make_cluster(folder), overwrite=["*"])
    assert not list(outside.iterdir())


def test_the_encrypted_file_of_the_original_is_taken_over_as_it_is(folder: Path) -> None:
    cluster = make_cluster(folder)
    names = [name for name in SECRETS if name != "cloudflare_token"]
    lines = ["# From the original.", 'cf_account_id: ""', *(f"{name}: {SECRETS[name]!r}" for name in names)]
    (folder / "infrastructure").mkdir()
    own = str(recipient_of(make_keyring(folder)))
    create_sops_file(folder / SEALED, "\n".join([*lines, ""]).encode(), [own])
    before = (folder / SEALED).read_bytes()
    assert SEALED not in configure(cluster).written
    assert (folder / SEALED).read_bytes() == before


def test_no_secret_is_added_to_a_file_that_a_stranger_can_read(folder: Path) -> None:
    cluster = make_cluster(folder)
    configure(cluster)
    stranger, _ = new_identity()
    own = str(recipient_of(make_keyring(folder)))
    # The file of a pull request, with a data key that the stranger knows; the record fits it.
    (folder / SEALED).unlink()
    create_sops_file(folder / SEALED, b"proxmox_api_token_secret: another\n", [own, stranger])
    record = folder / "infrastructure" / RECORD_NAME
    found = orjson.loads(record.read_bytes())
    found["files"] |= list_tokens((folder / SEALED).read_bytes(), SEALED)
    record.write_bytes(orjson.dumps(found))
    before = snapshot(folder)
    with pytest.raises(UnknownRecipientError, match=stranger):
        configure(cluster, overwrite=["*"])
    assert snapshot(folder) == before


@pytest.mark.parametrize("is_there", [False, True], ids=["new", "there"])
def test_a_rule_that_leaves_secrets_in_clear_is_refused_before_anything_is_written(
    folder: Path, is_there: bool
) -> None:
    cluster = make_cluster(folder)
    own = recipient_of(make_keyring(folder))
    rules = f"creation_rules:\n  - encrypted_regex: ^(data|stringData)$\n    age: {own}\n"
    if is_there:
        configure(cluster)
        (folder / SEALED).unlink()
    (folder / ".sops.yaml").write_text(rules)
    before = snapshot(folder)
    with pytest.raises(ClearSecretError, match="proxmox_api_token_secret"):
        configure(cluster, overwrite=["*"])
    assert snapshot(folder) == before


@pytest.mark.parametrize("name", ["age.key", "cluster.yaml#a", "infrastructure/../age.key", "/etc/hosts"])
def test_a_record_that_names_files_of_the_user_is_refused(folder: Path, name: str) -> None:
    cluster = make_cluster(folder)
    configure(cluster)
    before = (folder / "age.key").read_bytes()
    record = folder / "infrastructure" / RECORD_NAME
    found = orjson.loads(record.read_bytes())
    found["files"][name] = take_fingerprint(before)
    record.write_bytes(orjson.dumps(found))
    with pytest.raises(RecordError, match=re.escape(name)):
        configure(cluster)
    assert (folder / "age.key").read_bytes() == before


def test_templates_outside_of_the_repository_are_not_read(folder: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside" / "config" / "infrastructure"
    outside.mkdir(parents=True)
    (outside / "notes.txt").write_text("private")
    (folder / "templates").symlink_to(tmp_path / "outside")
    configure(make_cluster(folder))
    assert not (folder / "infrastructure" / "notes.txt").exists()
