"""What can go wrong with TrueNAS."""

from __future__ import annotations

from stackyard.base.errors import ExitStatus, StackyardError

__all__ = [
    "TrueNasAnswerError",
    "TrueNasBusyError",
    "TrueNasCertificateError",
    "TrueNasError",
    "TrueNasLoginError",
    "TrueNasRefusedError",
    "TrueNasUnreachableError",
]


class TrueNasError(StackyardError):
    """A call to TrueNAS failed."""

    code = "E-TRUENAS"
    summary = "TrueNAS reports an error"
    default_remedy = "Check the address and the key, then run the command again."


class TrueNasUnreachableError(TrueNasError):
    """There is no connection to TrueNAS, or it broke before an answer."""

    code = "E-TRUENAS-UNREACHABLE"
    summary = "TrueNAS cannot be reached"
    default_remedy = "Check that it runs, the address and the network, then run the command again."
    exit_status = ExitStatus.UNREACHABLE


class TrueNasCertificateError(TrueNasError):
    """TrueNAS shows a certificate that cannot be verified; the key was not sent."""

    code = "E-TRUENAS-CERTIFICATE"
    summary = "The certificate of TrueNAS cannot be verified"
    default_remedy = (
        "TrueNAS signs its own certificate. Compare the fingerprint with that of the certificate in TrueNAS "
        "(Credentials > Certificates), then write it as `fingerprint`, or name the file of its authority "
        "as `authority`. The key was not sent."
    )


class TrueNasLoginError(TrueNasError):
    """TrueNAS does not accept the key, or its user may not make this call."""

    code = "E-TRUENAS-LOGIN"
    summary = "TrueNAS does not accept the API key"
    default_remedy = (
        "Make a key in TrueNAS (user menu > My API Keys) for a user with the roles DATASET_READ and "
        "DATASET_WRITE, and keep it as `truenas_api_key` in cluster.sops.yaml. TrueNAS revokes a key that "
        "was once sent without TLS."
    )


class TrueNasBusyError(TrueNasError):
    """TrueNAS refuses all logins for a while, because there were too many attempts."""

    code = "E-TRUENAS-BUSY"
    summary = "TrueNAS refuses logins for a while"
    default_remedy = (
        "TrueNAS allows 20 attempts in a minute and then refuses all for ten minutes. Wait that long, and "
        "find out which program sends a wrong key."
    )


class TrueNasRefusedError(TrueNasError):
    """TrueNAS refuses a call, in its own words.

    Args:
        detail: What it says.
        is_unknown: Whether the release has no such method.
    """

    code = "E-TRUENAS-REFUSED"
    summary = "TrueNAS refuses a call"
    default_remedy = "The message is that of TrueNAS: correct what it names, and run the command again."

    def __init__(self, detail: str, *, is_unknown: bool = False) -> None:
        super().__init__(detail)
        self.is_unknown = is_unknown


class TrueNasAnswerError(TrueNasError):
    """What answers does not speak as TrueNAS does."""

    code = "E-TRUENAS-ANSWER"
    summary = "The answer is not one of TrueNAS"
    default_remedy = "Check the address: another program or a proxy may answer there."
