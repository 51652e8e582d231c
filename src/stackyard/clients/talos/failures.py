"""What can go wrong with a call to Talos."""

from __future__ import annotations

from stackyard.base.errors import ExitStatus, StackyardError

__all__ = [
    "FingerprintError",
    "TalosCertificateError",
    "TalosClockError",
    "TalosError",
    "TalosRefusedError",
    "TalosUnreachableError",
]


class TalosError(StackyardError):
    """A call to the Talos API of a node failed."""

    code = "E-TALOS"
    summary = "The Talos API reports an error"
    default_remedy = "Look at the console of the node."


class TalosUnreachableError(TalosError):
    """Nothing answers at the Talos API of a node: it boots, installs, or its address or network is wrong."""

    code = "E-TALOS-UNREACHABLE"
    summary = "The Talos API of a node cannot be reached"
    default_remedy = (
        "Check that the node is on, that it has this address, and that port 50000 is open from here. "
        "The API is closed while Talos installs and reboots."
    )
    exit_status = ExitStatus.UNREACHABLE


class TalosCertificateError(TalosError):
    """A node asks for a client certificate that we have not, or the two sides do not trust each other."""

    code = "E-TALOS-CERTIFICATE"
    summary = "A node and this client do not trust each other"
    default_remedy = (
        "The node has a configuration already, maybe of another cluster. Use the talosconfig of that "
        "cluster, or reset the node."
    )


class TalosClockError(TalosCertificateError):
    """A certificate is signed by the right authority, and not valid at this time: a clock is wrong."""

    code = "E-TALOS-CLOCK"
    summary = "A certificate is not valid now"
    default_remedy = (
        "Compare the clock of this machine with that of the node, and check that the node reaches its time "
        "servers. A node renews its certificate by itself once its clock is right; `stackyard cluster "
        "talosconfig` makes a talosconfig that has not expired."
    )


class FingerprintError(TalosError):
    """The certificate of a node in maintenance mode is not the one that was expected."""

    code = "E-TALOS-FINGERPRINT"
    summary = "Another machine answers at the address of a node"
    default_remedy = "Compare it with the one on the console of the node; it is another one at every boot."


class TalosRefusedError(TalosError):
    """A node refuses a call.

    Args:
        detail: What it says.
        status: The status of gRPC by name: `PERMISSION_DENIED`.
    """

    code = "E-TALOS-REFUSED"
    summary = "A node refuses a call of the Talos API"
    default_remedy = "The message is that of Talos: correct what it names, and repeat the command."

    def __init__(self, detail: str, status: str) -> None:
        super().__init__(detail)
        self.status = status
