"""Files of Ansible Vault that are damaged, made to harm, or without their password: refused, untold."""

from __future__ import annotations

import binascii
from pathlib import Path

import orjson
import pytest
from tests.support.programs import write_program

from stackyard.base.errors import StackyardError
from stackyard.secrets import read_secrets
from stackyard.secrets.keyring import Keyring, KeyringError
from stackyard.secrets.vault.envelope import VaultFormatError, parse_envelope, seal
from stackyard.secrets.vault.passwords import vault_passwords

CANARY = "canary-7f3a9c-hunter2"
PASSWORD = "vault-canary-5d1e"
ENV = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "ANSIBLE_VAULT_PASSWORD": PASSWORD}
SEALED = seal(f"password: {CANARY}\n".encode(), PASSWORD.encode())
HEADER = "$ANSIBLE_VAULT;1.1;AES256\n"


def wrapped(data: bytes, times: int = 1) -> str:
    for _ in range(times):
        data = binascii.hexlify(data)
    return data.decode()


def body(*parts: bytes) -> str:
    return wrapped(b"\n".join(binascii.hexlify(part) for part in parts))


def changed_signature() -> str:
    envelope = parse_envelope(SEALED, "f")
    return HEADER + body(envelope.salt, bytes(32), envelope.data)


DAMAGED = {
    **{f"cut off at {at}": SEALED[:at] for at in (10, 26, 27, 40, 107, len(SEALED) // 2, len(SEALED) - 3)},
    "a changed signature": changed_signature(),
    "a short signature": HEADER + body(b"salt", b"x", b"data"),
    "no salt": HEADER + body(b"", bytes(32), b"data" * 4),
    "nothing encrypted": HEADER + body(bytes(32), bytes(32), b""),
    "a fourth part": HEADER + body(bytes(32), bytes(32), b"data", b"more"),
    "wrapped deep": HEADER + wrapped(SEALED.encode(), 5),
    "a vault inside a vault, unopened": HEADER + wrapped(SEALED.encode()),
    "an odd number of digits": SEALED.rstrip() + "0",
    "other digits": SEALED.replace("3", "\uff13"),
    "lines of other things": SEALED + "password: in clear\n",
    "another cipher": SEALED.replace("AES256", "AES"),
    "a newer version": SEALED.replace("1.1", "9.9"),
    "a header of a megabyte": "$ANSIBLE_VAULT;" + "1" * 2**20,
    "control characters in the header": SEALED.replace("AES256", "AES256;\x1b]0;owned\x07", 1),
    "ten megabytes of digits": HEADER + "30" * (5 * 2**20),
    "ten megabytes of lines": HEADER + "30\n" * (3 * 2**20),
}


def shown(err: StackyardError) -> str:
    findings = [(one.detail, one.kind.remedy) for one in err.diagnostics]
    before = None if err.__suppress_context__ else err.__context__
    return str((str(err), err.detail, err.remedy, repr(err), findings, err.__cause__, before))


@pytest.mark.parametrize("how", DAMAGED)
def test_a_damaged_file_is_refused_and_tells_nothing(tmp_path: Path, how: str) -> None:
    path = tmp_path / "secrets.yaml"
    path.write_text(DAMAGED[how])
    with pytest.raises(StackyardError) as caught:
        read_secrets(path, Keyring(env=ENV)).data  # noqa: B018 - whichever of the two refuses it
    text = shown(caught.value)
    assert CANARY not in text
    assert PASSWORD not in text
    assert len(caught.value.detail) < 2000
    assert "\x1b" not in caught.value.detail
    assert "\x07" not in caught.value.detail


# Without a whole header it is a text in clear that is to be encrypted, as somebody writes it in an editor.
IN_CLEAR = ("cut off at 10", "control characters in the header")


@pytest.mark.parametrize("how", [name for name in DAMAGED if name not in IN_CLEAR])
def test_a_damaged_value_is_refused_and_tells_nothing(tmp_path: Path, how: str) -> None:
    path = tmp_path / "secrets.yaml"
    indented = "\n".join(f"    {line}" for line in DAMAGED[how].splitlines())
    path.write_text(f"passwords:\n  a: !vault |\n{indented}\n  b: {CANARY}-b\n")
    with pytest.raises(StackyardError) as caught:
        read_secrets(path, Keyring(env=ENV)).data  # noqa: B018 - as above
    assert CANARY not in shown(caught.value)
    assert len(caught.value.detail) < 2000


@pytest.mark.parametrize(
    "plain",
    [
        f"password: [{CANARY}\n",
        f"password: {CANARY}\npassword: {CANARY}\n",
        f"- {CANARY}\n",
        f"{CANARY}\n",
        f"a: &x {CANARY}\nb: *y\n",
        f"password: \x01{CANARY}\n",
        f"!{CANARY} x: y\n",
        "[" * 50_000 + CANARY,
    ],
)
def test_a_text_that_makes_no_sense_once_it_is_open_is_not_told(tmp_path: Path, plain: str) -> None:
    path = tmp_path / "secrets.yaml"
    path.write_text(seal(plain.encode(), PASSWORD.encode()))
    try:
        read_secrets(path, Keyring(env=ENV)).data  # noqa: B018 - as above
    except StackyardError as err:
        assert CANARY not in shown(err)  # noqa: PT017 - a text that makes sense is no error


def test_another_password_opens_nothing_and_none_is_told(tmp_path: Path) -> None:
    path = tmp_path / "secrets.yaml"
    path.write_text(SEALED)
    with pytest.raises(StackyardError) as caught:
        read_secrets(path, Keyring(env={**ENV, "ANSIBLE_VAULT_PASSWORD": f"{PASSWORD}x"}))
    assert PASSWORD not in shown(caught.value)


def test_the_right_one_of_many_passwords_is_found_and_a_label_alone_decides_where_it_must(
    tmp_path: Path,
) -> None:
    files = [tmp_path / f"{number}.txt" for number in range(5)]
    for number, file in enumerate(files):
        file.write_text(PASSWORD if number == 3 else f"wrong {number}")
    path = tmp_path / "secrets.yaml"
    path.write_text(seal(f"password: {CANARY}\n".encode(), PASSWORD.encode(), "prod"))
    ids = tuple(f"id{number}@{file}" for number, file in enumerate(files))
    env = {"PATH": ENV["PATH"], "HOME": ENV["HOME"]}
    assert read_secrets(path, Keyring(env=env, vault_ids=ids)).data["password"] == CANARY
    strict = {**env, "ANSIBLE_VAULT_ID_MATCH": "true"}
    with pytest.raises(StackyardError):
        read_secrets(path, Keyring(env=strict, vault_ids=ids))


@pytest.mark.parametrize("ending", ["exit 3", "kill -9 $$", "echo complaint >&2; exit 1"])
def test_what_a_failing_script_printed_is_not_told(tmp_path: Path, ending: str) -> None:
    """It may be the password: a script may print it, and fail after that."""
    script = write_program(tmp_path / "password.sh", f"echo {PASSWORD}; {ending}")
    with pytest.raises(KeyringError) as caught:
        vault_passwords(Keyring(env={"PATH": ENV["PATH"]}, vault_ids=(str(script),)))
    assert PASSWORD not in shown(caught.value)
    assert ("complaint" in caught.value.detail) == ("complaint" in ending)


def test_a_label_is_never_taken_for_more_than_a_name() -> None:
    for label in ("../../etc/passwd", "$(id)", "a;b", "-x"):
        sealed = seal(b"x", b"p", label)
        try:
            assert parse_envelope(sealed, "f").label == label
        except VaultFormatError:
            assert ";" in label
    assert orjson.dumps({"label": parse_envelope(SEALED, "f").label})
