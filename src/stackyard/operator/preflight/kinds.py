"""The findings that only a preflight makes; what does not fit on a cluster has those of the guard."""

from __future__ import annotations

from stackyard.base.diagnostics import Kind, Severity

__all__ = [
    "CERTIFICATE_ENDS",
    "CLOCK",
    "CPU_TYPE",
    "DOWNLOAD",
    "LAB_GUESTS",
    "LINK_LOCAL",
    "LOCAL_ROOT",
    "NAMES",
    "NESTED",
    "NESTED_UNKNOWN",
    "NOBODY",
    "OLD_PROXMOX",
    "SECRET",
    "SSH",
    "SSH_ADVISED",
    "STORAGE_OFF",
    "TOKEN",
    "TOOL",
    "UNKNOWN",
    "UNREACHABLE",
    "UNTRUSTED",
    "WAY_OUT",
]

UNREACHABLE = Kind(
    code="E-PREFLIGHT-API",
    summary="The API of the host does not answer",
    remedy="Check `api_endpoint` in the file of the node, the network, and that pveproxy runs on the host.",
)
UNTRUSTED = Kind(
    code="E-PREFLIGHT-CERTIFICATE",
    summary="The certificate of the host is not trusted",
    remedy="If the host has a new one, write its SHA-256 into `api_fingerprint` in the file of the node.",
)
CERTIFICATE_ENDS = Kind(
    code="W-PREFLIGHT-CERTIFICATE-ENDS",
    summary="The certificate of the host ends soon, or has ended",
    remedy="Renew it on the host (`pvecm updatecerts --force`), and correct `api_fingerprint` then.",
    severity=Severity.WARNING,
)
LINK_LOCAL = Kind(
    code="W-PREFLIGHT-LINK-LOCAL",
    summary="The name of the host leads to a link-local address",
    remedy=(
        "Give its name a fixed address in /etc/hosts. Proxmox writes that address into its certificate, "
        "and cannot make one for `fe80::...%vmbr0`; then run `pvecm updatecerts --force` on the host."
    ),
    severity=Severity.WARNING,
)
LOCAL_ROOT = Kind(
    code="W-PREFLIGHT-ROOT",
    summary="This machine cannot be set up by this user",
    remedy="Run scenarios with --local as root, or with a sudo that asks for no password.",
    severity=Severity.WARNING,
)
TOKEN = Kind(
    code="E-PREFLIGHT-TOKEN",
    summary="The host does not accept the API token",
    remedy="Make a new one (`pveum user token add USER NAME`) and put it under `api_tokens` in secrets.yaml.",
)
OLD_PROXMOX = Kind(
    code="W-PREFLIGHT-VERSION",
    summary="This version of Proxmox VE is not tested",
    remedy="Upgrade the host.",
    severity=Severity.WARNING,
)
STORAGE_OFF = Kind(
    code="E-PREFLIGHT-STORAGE-OFF",
    summary="A datastore is disabled or not active",
    remedy="Enable it on the host, or use another one.",
)
DOWNLOAD = Kind(
    code="E-PREFLIGHT-DOWNLOAD",
    summary="The host cannot download an image",
    remedy="Correct the `url`, or the network and name servers of the host; or put the image there by hand.",
)
NESTED = Kind(
    code="E-PREFLIGHT-NESTED",
    summary="The host cannot run virtual machines inside virtual machines",
    remedy=(
        "Enable virtualisation in its firmware, and `nested=1` for kvm_intel or kvm_amd in /etc/modprobe.d; "
        "then reboot it."
    ),
)
LAB_GUESTS = Kind(
    code="E-PREFLIGHT-LAB-GUESTS",
    summary="A guest with a spec, or a node inside of a guest, cannot be set up in this lab",
    remedy=(
        "Install bubblewrap (`apt install bubblewrap`) on the machine of the lab and start the lab again "
        "(`stackyard lab down`, `stackyard lab up`); or use a manifest of virtual machines without "
        "`spec` and without type `pve`, or create "
        "the guests alone with `stackyard apply manifest:NAME --no-verify`."
    ),
)
NESTED_UNKNOWN = Kind(
    code="W-PREFLIGHT-NESTED-UNKNOWN",
    summary="Cannot check whether the host supports nested virtualization",
    remedy="Set up SSH to the host, or look there: `cat /sys/module/kvm_*/parameters/nested` says Y or 1.",
    severity=Severity.WARNING,
)
CPU_TYPE = Kind(
    code="W-PREFLIGHT-CPU-TYPE",
    summary="A node inside the host has processors that cannot run guests",
    remedy="Write `cpu: {type: host}` for it.",
    severity=Severity.WARNING,
)
WAY_OUT = Kind(
    code="W-PREFLIGHT-GATEWAY",
    summary="There is no gateway",
    remedy="Set `gateway` in site.yaml, in the network, or for the guest.",
    severity=Severity.WARNING,
)
NAMES = Kind(
    code="W-PREFLIGHT-DNS",
    summary="There is no name server",
    remedy="Set `dns_servers` in site.yaml, or the name servers of the host.",
    severity=Severity.WARNING,
)
SECRET = Kind(
    code="E-PREFLIGHT-SECRET",
    summary="A secret that is named has no value",
    remedy="Add it to secrets.yaml with `stackyard secrets edit`.",
)
NOBODY = Kind(
    code="W-PREFLIGHT-LOGIN",
    summary="No user will be able to log in to a guest",
    remedy="Add a public key under `ssh_keys` in secrets.yaml with `stackyard secrets edit`.",
    severity=Severity.WARNING,
)
TOOL = Kind(
    code="E-PREFLIGHT-TOOL",
    summary="A program that is needed cannot be used",
    remedy="`stackyard tools list` shows what there is; `stackyard tools install tofu` installs OpenTofu.",
)
SSH = Kind(
    code="E-PREFLIGHT-SSH",
    summary="The host cannot be reached over SSH, which the run needs",
    remedy=(
        "Check `ssh_user` and `ssh_port` in the file of the node; the login is `passwords.node_NAME` in "
        "secrets.yaml, or a key in your SSH agent."
    ),
)
SSH_ADVISED = Kind(
    code="W-PREFLIGHT-SSH",
    summary="The host cannot be reached over SSH",
    remedy="Containers do not need it, but VMs with user data do: check the login and the port.",
    severity=Severity.WARNING,
)
CLOCK = Kind(
    code="W-PREFLIGHT-CLOCK",
    summary="The clocks of the host and of this machine differ",
    remedy="Set up time synchronisation on both: certificates and tokens are only good for a time.",
    severity=Severity.WARNING,
)
UNKNOWN = Kind(
    code="W-PREFLIGHT-UNKNOWN",
    summary="Something could not be checked",
    remedy="Read what the host answered; the run itself may still work.",
    severity=Severity.WARNING,
)
