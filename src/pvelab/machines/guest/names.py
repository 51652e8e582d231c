"""Which programs of a guest are shims, and which module answers for each."""

from __future__ import annotations

__all__ = ["NODE_SHIMS", "SHIMS"]

_MODULES = {
    "shim_apt": "apt apt-get aptitude apt-cache apt-mark apt-config apt-key add-apt-repository",
    "shim_dpkg": "dpkg dpkg-query dpkg-reconfigure debconf-set-selections update-alternatives",
    "shim_systemctl": "systemctl service invoke-rc.d update-rc.d",
    "shim_systemd": "hostnamectl timedatectl localectl loginctl journalctl hostname systemd-detect-virt"
    " locale-gen update-locale",
    "shim_users": "useradd adduser usermod userdel deluser groupadd addgroup groupmod groupdel delgroup"
    " gpasswd chpasswd passwd chage getent chsh",
    "shim_sudo": "sudo su runuser visudo sudoedit",
    "shim_network": "ip ss ping netstat ifconfig ifup ifdown resolvectl",
    "shim_power": "reboot shutdown poweroff halt init telinit",
    "shim_cloudinit": "cloud-init cloud-localds-id cloud-id",
    "shim_uname": "uname",
    "shim_file": "lab-file",
    "shim_sftp": "lab-sftp",
    "shim_quiet": "sysctl modprobe mount umount swapon swapoff update-grub update-initramfs netplan ufw"
    " ldconfig systemd-tmpfiles systemd-sysusers systemd-machine-id-setup",
}

SHIMS: dict[str, str] = {name: module for module, names in _MODULES.items() for name in names.split()}
# What only a guest has that is a Proxmox node.
NODE_SHIMS: dict[str, str] = dict.fromkeys(
    "pvesh pveversion qm pct pvesm pveum pvecm pvenode pveam ha-manager vzdump qmrestore".split(), "shim_node"
)
