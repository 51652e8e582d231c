"""Guests are whole: their image is known, their size is said, and everything fits the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.base.diagnostics import Kind, Severity
from stackyard.base.suggestions import did_you_mean
from stackyard.sources.site.checks.references import DANGLING
from stackyard.sources.site.damaged import is_lost
from stackyard.sources.site.images import content_of, is_volume, list_images

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackyard.base.diagnostics import Diagnostics
    from stackyard.sources.site.document import Key, LocatedValues
    from stackyard.sources.site.entities.images import Image
    from stackyard.sources.site.layers import GuestEntry
    from stackyard.sources.site.load import Site

__all__ = ["check_guests"]

UNKNOWN_IMAGE = Kind(
    code="E-SITE-IMAGE",
    summary="An image is not declared",
    remedy="Correct the name, or add it to `images` in site.yaml.",
)
NOT_WHOLE = Kind(
    code="E-SITE-GUEST",
    summary="A guest is not fully described",
    remedy="Add what is missing to its entry, or name a `template` or `preset` that says it.",
)
NO_GUESTS = Kind(
    code="W-SITE-ENV-EMPTY",
    summary="An env has no guests and no networks",
    remedy="Add guests to `vms`; until then there is nothing to plan.",
    severity=Severity.WARNING,
)


def check_guests(site: Site, found: Diagnostics) -> None:
    """Check every guest of every env."""
    images = list_images(site)
    shared = set(site.settings.networks)
    own = [] if site.file is None else [site.file.places]
    for name, env in site.envs.items():
        guests = site.guests(name)
        has_code = any(folder.declares for folder in site.code.of(name))
        if not (guests or env.model.networks or has_code or is_lost(env.places, "vms")):
            found.add(NO_GUESTS, f"The env '{name}' describes nothing.", env.places.place(("vms",)))
        known_networks = shared | set(env.model.networks)
        sources = [env.places, *own]
        for guest in guests:
            if not _is_lost(own, "images", guest.values.get("image")):
                _check_image(guest, images, found)
            _check_size(site, guest, found)
            _check_networks(guest, known_networks, sources, found)
            _check_keys(site, guest, found)


def _check_image(guest: GuestEntry, images: dict[str, Image], found: Diagnostics) -> None:
    name = guest.values.get("image")
    if name is None or is_volume(name):
        return
    image = images.get(name)
    if image is None:
        detail = f"There is no image '{name}'.{did_you_mean(name, images)}"
        found.add(UNKNOWN_IMAGE, detail, guest.place(("image",)))
    elif (content_of(image) == "vztmpl") != guest.is_container:
        is_for = "containers" if content_of(image) == "vztmpl" else "virtual machines"
        detail = f"The image '{name}' of '{guest.name}' is one for {is_for}."
        found.add(UNKNOWN_IMAGE, detail, guest.place(("image",)))


def _check_size(site: Site, guest: GuestEntry, found: Diagnostics) -> None:
    """Check that nothing has to be guessed; a layer that is missing has a finding of its own."""
    values = guest.values
    if values.get("clone") is not None or not guest.is_whole or _has_missing_layer(site, guest):
        return
    needed = ["cores", "memory"]
    if not (values.get("disks") or values.get("cdrom") or values.get("imported")):
        needed += ["image", "disk"]
    missing = [key for key in needed if values.get(key) is None]
    if missing:
        detail = f"'{guest.name}' does not say its {', '.join(f'`{key}`' for key in missing)}."
        found.add(NOT_WHOLE, detail, guest.place(("name",)))


def _has_missing_layer(site: Site, guest: GuestEntry) -> bool:
    entry = guest.layers[-1].values
    template = entry.get("template")
    if template is not None and template not in site.templates:
        return True
    said = site.templates[template].places.data if template is not None else {}
    presets = [source.get("preset", source.get("vm_preset")) for source in (entry, said)]
    return any(preset is not None and preset not in site.presets for preset in presets)


def _is_lost(sources: Sequence[LocatedValues], key: str, name: str | None) -> bool:
    """Return whether something of this name is declared in words that cannot be used."""
    return name is not None and any(is_lost(places, key, name) for places in sources)


def _check_networks(
    guest: GuestEntry, known: set[str], sources: Sequence[LocatedValues], found: Diagnostics
) -> None:
    named: list[tuple[str | None, tuple[Key, ...]]] = [(guest.values.get("network"), ("network",))]
    # The network of the first card is the short form already.
    for index, nic in enumerate((guest.values.get("nics") or ())[1:], 1):
        named.append((nic.get("network"), ("nics", index, "network")))
    for name, path in named:
        if name is not None and name not in known and not _is_lost(sources, "networks", name):
            detail = f"There is no network '{name}'.{did_you_mean(name, known)}"
            found.add(DANGLING, detail, guest.place(path, ("nics", 0, "network")))


def _check_keys(site: Site, guest: GuestEntry, found: Diagnostics) -> None:
    """Check the keys of users at the first boot: each is a public key, or the name of one."""
    known = site.secret_values.ssh_keys
    users = (guest.values.get("cloud_init") or {}).get("users") or ()
    for number, user in enumerate(users):
        for index, key in enumerate(user.get("keys") or ()):
            if " " not in key and key.removeprefix("ssh_keys.") not in known and site.secrets.is_known:
                detail = f"There is no `ssh_keys` in secrets.yaml '{key}'.{did_you_mean(key, known)}"
                found.add(DANGLING, detail, guest.place(("cloud_init", "users", number, "keys", index)))
