"""One-time passwords: those of the standard, and nothing else."""

from __future__ import annotations

import base64

import pytest

from pvelab.server.problems import PveError
from pvelab.world.access.second_factors import Totp, challenge_for, new_recovery, verify
from pvelab.world.store import Store

# RFC 6238, appendix B.
SECRETS = {"SHA1": b"12345678901234567890", "SHA256": b"12345678901234567890123456789012"}
VECTORS = [
    ("SHA1", 59, "94287082"),
    ("SHA1", 1111111109, "07081804"),
    ("SHA1", 20000000000, "65353130"),
    ("SHA256", 59, "46119246"),
    ("SHA256", 2000000000, "90698825"),
]


def uri(algorithm: str = "SHA1", digits: int = 8, period: int = 30) -> str:
    secret = base64.b32encode(SECRETS[algorithm]).decode().rstrip("=")
    return f"otpauth://totp/lab?secret={secret}&algorithm={algorithm}&digits={digits}&period={period}"


@pytest.mark.parametrize(("algorithm", "moment", "password"), VECTORS)
def test_passwords_are_those_of_the_standard(algorithm: str, moment: int, password: str) -> None:
    totp = Totp.parse(uri(algorithm))
    assert totp.at(moment) == password
    assert totp.counter(password, moment + 30) == moment // 30
    assert totp.counter(password, moment + 90) is None


@pytest.mark.parametrize(
    "text",
    [
        "otpauth://hotp/x?secret=AAAA",
        "otpauth://totp/x",
        "otpauth://totp/?secret=AAAA",
        "otpauth://totp/x?secret=!",
        "otpauth://totp/x?secret=AAAA&digits=1",
        "otpauth://totp/x?secret=AAAA&digits=x",
        "otpauth://totp/x?secret=AAAA&period=0",
        "otpauth://totp/x?secret=AAAA&algorithm=MD5",
    ],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(PveError):
        Totp.parse(text)


def test_a_password_and_a_key_are_used_up() -> None:
    store = Store()
    recovery, keys = new_recovery(0)
    totp = {"id": "a", "type": "totp", "description": "", "created": 0, "enable": 1, "uri": uri()}
    with store.transaction():
        store.put("tfa", "u@pve", {"entries": [totp, recovery]})
        assert challenge_for(store, "u@pve") == {"totp": True, "recovery": list(range(10))}
        assert verify(store, "u@pve", "totp:94287082", 59)
        assert not verify(store, "u@pve", "totp:94287082", 59)
        assert verify(store, "u@pve", f"recovery:{keys[0]}", 59)
        assert not verify(store, "u@pve", f"recovery:{keys[0]}", 59)
        assert not verify(store, "u@pve", "94287082", 59)
        challenge = challenge_for(store, "u@pve") or {}
        assert challenge["recovery"] == list(range(1, 10))
    assert challenge_for(store, "nobody@pve") is None
