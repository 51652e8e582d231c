"""Specs resolved: with the site's defaults, the whole posture, every user and every key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.sources.site.postures import posture_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stackyard.sources.site.entities.specs import SpecFile, SpecUser
    from stackyard.sources.site.load import Site
    from stackyard.sources.site.postures import Posture

__all__ = [
    "DEFAULT_TIMEZONE",
    "DEFAULT_USER",
    "FirstBoot",
    "first_boot",
    "join_lists",
    "resolve_spec",
    "spec_variables",
]

DEFAULT_USER = "homestak"
DEFAULT_TIMEZONE = "UTC"


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstBoot:
    """What a guest gets at its first boot, in the words of the `Desired` model."""

    users: list[dict[str, Any]]
    packages: list[str]
    timezone: str | None


def join_lists(*lists: Iterable[str]) -> list[str]:
    """Return lists one after the other, each word once, in the order of its first place."""
    return list(dict.fromkeys(word for words in lists for word in words))


def first_boot(site: Site, posture: Posture | None, spec: str | None) -> FirstBoot:
    """Return what the site, the posture and the spec of a guest want at its first boot.

    The user that automation logs in as is there in any case, and may do everything. With a spec, its users
    and packages come on top, and its own posture counts.
    """
    loaded = site.specs.get(spec or "")
    if loaded is not None:
        posture = posture_of(site, loaded.model.access.posture)
    defaults = site.settings.defaults
    keys = site.secret_values.ssh_keys
    has_password = posture is not None and not posture.settings(prefer_nested=True)["sudo_nopasswd"]
    sudo: bool | str = True if has_password else "nopasswd"
    automation: dict[str, Any] = {
        "name": defaults.automation_user or defaults.vm_user or DEFAULT_USER,
        "keys": list(keys.values()),
        # No one knows a password of it: with sudo that asks for one, it could do nothing that it is for.
        "sudo": "nopasswd",
    }
    users = [
        automation,
        *(_boot_user(site, user, sudo) for user in (loaded.model.access.users if loaded else ())),
    ]
    if "vm_root" in site.secret_values.passwords:
        users.append({"name": "root", "password": {"secret": "passwords.vm_root"}})
    by_name = {str(user["name"]): user for user in users}
    by_name[automation["name"]]["sudo"] = automation["sudo"]
    wanted = posture.packages(prefer_nested=True) if posture is not None else ()
    platform = loaded.model.platform.packages if loaded else ()
    timezone = (loaded.model.config.timezone if loaded else None) or defaults.timezone
    return FirstBoot(
        users=list(by_name.values()),
        packages=join_lists(defaults.packages, platform, wanted),
        timezone=timezone,
    )


def _boot_user(site: Site, user: SpecUser, sudo: bool | str) -> dict[str, Any]:
    result: dict[str, Any] = {"name": user.name, "keys": list(_keys(site, user).values())}
    result["sudo"] = sudo if user.sudo else False
    if user.groups:
        result["groups"] = list(user.groups)
    return {**result, "shell": user.shell} if user.shell else result


def _keys(site: Site, user: SpecUser) -> dict[str, str]:
    """Return the keys of a user by name: those that it names, or else all."""
    known = site.secret_values.ssh_keys
    if user.ssh_keys is None:
        return dict(known)
    names = [key.removeprefix("ssh_keys.") for key in user.ssh_keys]
    return {name: known[name] for name in names if name in known}


def resolve_spec(site: Site, name: str, *, guest: str | None = None) -> dict[str, Any]:
    """Return a spec with nothing left to look up: the same for push and for pull.

    Args:
        site: The site.
        name: A spec that it has.
        guest: For whom, who is called so where the spec does not say how.
    """
    loaded = site.specs[name]
    model: SpecFile = loaded.model
    defaults = site.settings.defaults
    posture = posture_of(site, model.access.posture)
    nag = model.config.pve.remove_subscription_nag if model.config.pve else None
    config = model.config.model_dump(exclude_none=True)
    config["timezone"] = model.config.timezone or defaults.timezone or DEFAULT_TIMEZONE
    if nag is None and defaults.pve_remove_subscription_nag is not None:
        config["pve"] = {"remove_subscription_nag": defaults.pve_remove_subscription_nag}
    resolved: dict[str, Any] = {
        "schema_version": 1,
        "identity": {
            "hostname": model.identity.hostname or guest or name,
            "domain": model.identity.domain or defaults.domain,
        },
        "network": {
            "ip": model.network.ip,
            "gateway": model.network.gateway,
            "dns": list(model.network.dns or defaults.dns_servers),
        },
        "access": {
            "posture": model.access.posture,
            "users": [_user_document(site, user) for user in model.access.users],
            "_posture": posture.document(),
        },
        "platform": {
            "packages": join_lists(
                defaults.packages, model.platform.packages, posture.packages(prefer_nested=True)
            ),
            "services": {
                "enable": list(model.platform.services.enable),
                "disable": list(model.platform.services.disable),
            },
        },
        "config": config,
    }
    if model.run is not None:
        resolved["run"] = model.run.model_dump(exclude_none=True)
    return resolved


def _user_document(site: Site, user: SpecUser) -> dict[str, Any]:
    document: dict[str, Any] = {
        "name": user.name,
        "sudo": user.sudo,
        "ssh_keys": list(_keys(site, user).values()),
    }
    if user.groups:
        document["groups"] = list(user.groups)
    if user.shell:
        document["shell"] = user.shell
    return document


def spec_variables(resolved: dict[str, Any]) -> dict[str, Any]:
    """Return a resolved spec as Ansible variables; every user is among them, and the first one also alone."""
    access, platform = resolved["access"], resolved["platform"]
    posture = access["_posture"]
    users = access["users"]
    variables: dict[str, Any] = {
        "hostname": resolved["identity"]["hostname"],
        "domain": resolved["identity"]["domain"],
        "network": resolved["network"],
        "timezone": resolved["config"]["timezone"],
        "packages": platform["packages"],
        "users": users,
        "ssh_authorized_keys": join_lists(*(user["ssh_keys"] for user in users)),
        "ssh_port": posture["ssh"]["port"],
        "ssh_permit_root_login": posture["ssh"]["permit_root_login"],
        "ssh_password_authentication": posture["ssh"]["password_authentication"],
        "sudo_nopasswd": posture["sudo"]["nopasswd"],
        "fail2ban_enabled": posture["fail2ban"]["enabled"],
        "posture_name": access["posture"],
        "services_enable": platform["services"]["enable"],
        "services_disable": platform["services"]["disable"],
    }
    nag = resolved["config"].get("pve", {}).get("remove_subscription_nag")
    if nag is not None:
        variables["pve_remove_subscription_nag"] = nag
    if users:
        variables["local_user"] = users[0]["name"]
        variables["user_sudo"] = users[0]["sudo"]
    return variables
