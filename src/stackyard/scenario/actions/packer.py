"""Images that packer makes: its folder brought to a machine, built there, published and fetched."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stackyard.base.errors import UsageError
from stackyard.scenario.actions.send_folder import send_folder
from stackyard.scenario.failures import CommandFailedError, MachineUnfitError, PhaseFailedError
from stackyard.scenario.model import ActionResult
from stackyard.scenario.sums import hash_of

if TYPE_CHECKING:
    from stackyard.scenario.context import Context

__all__ = ["BuildImages", "FetchImages", "PublishImages", "SyncPacker", "iso_folder"]

# Where installations of homestak have it, the newest first.
_FOLDERS = ("/usr/local/lib/homestak/packer", "/opt/homestak/packer", "$HOME/lib/packer", "$HOME/packer")
_TEMPLATE_FILE, _SUFFIX = "template.pkr.hcl", ".pkr.hcl"
_NOT_SENT = (".git", "images", "logs", "cache", "packer_cache")
_BUILD_S = 900.0
# The first packer that installs the plugins which a template names.
_WITH_PLUGINS = (1, 7, 0)
# What the templates of homestak want to be told, by the program that builds them.
_KEY_VARIABLES = ("ssh_private_key_file", "ssh_public_key")
_WITH_KEY = """\
cd {here}
keys=$(mktemp -d) || exit 1
trap 'rm -rf "$keys"' EXIT
ssh-keygen -q -t ed25519 -N '' -f "$keys/key" || exit 1
packer build -color=false -force -var "ssh_private_key_file=$keys/key" \
    -var "ssh_public_key=$(cat "$keys/key.pub")" {file}
"""
_COPY_S = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncPacker:
    """Brings the folder of packer from here to the machine; what is built over there stays."""

    async def run(self, context: Context) -> ActionResult:
        """Send everything but what is built, and remove what is no longer here."""
        source = _own_folder(context)
        folder = await _folder(context, is_made=True)
        count = await send_folder(context, source, folder, left_out=_NOT_SENT)
        message = f"{count} files of {source} are in {folder} on {context.machine.shown}."
        return ActionResult(success=True, message=message, context_updates={"packer_folder": folder})


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildImages:
    """Builds images, one after the other: each needs the machine for itself."""

    async def run(self, context: Context) -> ActionResult:
        """Build them; one that fails is a failure, and the others are built all the same."""
        folder = await _folder(context)
        version = await _version(context)
        built: dict[str, str] = {}
        failed: dict[str, str] = {}
        for template, file in (await _templates(context, folder)).items():
            try:
                built[template] = await _build(context, folder, template, file=file, version=version)
            except (PhaseFailedError, CommandFailedError) as err:
                failed[template] = err.detail
        updates = {"packer_folder": folder, "images": built}
        if failed:
            message = " ".join(f"{name}: {why}" for name, why in failed.items())
            return ActionResult(success=False, message=message, context_updates=updates)
        return ActionResult(success=True, message=f"Built {', '.join(built)}.", context_updates=updates)


async def _version(context: Context) -> tuple[int, ...]:
    """Return the version of packer on the machine.

    Raises:
        MachineUnfitError: It is not installed.
    """
    said = await context.sh("command -v packer >/dev/null && packer version; true", as_root=False)
    if not said.strip():
        raise MachineUnfitError(
            f"packer is not installed on {context.machine.shown}.",
            remedy="Install packer 1.7 or later (from HashiCorp's repository) and qemu-system-x86 there.",
        )
    found = re.search(r"v?(\d+)\.(\d+)\.(\d+)", said)
    return tuple(map(int, found.groups())) if found else _WITH_PLUGINS


async def _build(context: Context, folder: str, template: str, *, file: str, version: tuple[int, ...]) -> str:
    here, quoted = shlex.quote(folder), shlex.quote(file)
    text = await context.sh(f"cat {shlex.quote(f'{folder}/{file}')}", as_root=False, is_quiet=True)
    if version >= _WITH_PLUGINS:
        await context.sh(f"cd {here} && packer init {quoted}", timeout_s=_BUILD_S, as_root=False)
    elif "required_plugins" in text:
        raise PhaseFailedError(
            f"{file} names plugins (`required_plugins`), and packer {'.'.join(map(str, version))} on "
            f"{context.machine.shown} is older than 1.7, which can install them."
        )
    script = f"cd {here} && packer build -color=false -force {quoted}"
    if all(f'variable "{name}"' in text for name in _KEY_VARIABLES):
        # The guest in which the image is created is logged in to once, with a key of its own.
        script = _WITH_KEY.format(here=here, file=quoted)
    await context.sh(script, timeout_s=_BUILD_S, as_root=False)
    image = await _image(context, folder, template)
    sums = f"sha256sum {shlex.quote(image)} > {shlex.quote(image)}.sha256"
    await context.sh(sums, timeout_s=_COPY_S, as_root=False)
    return image


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishImages:
    """Puts images that were built into the storage of the Proxmox VE that runs there."""

    async def run(self, context: Context) -> ActionResult:
        """Copy each beside its place, look whether it is whole, and put it there."""
        folder = await _folder(context)
        target = await iso_folder(context)
        published = []
        for template in await _templates(context, folder):
            image = shlex.quote(await _image(context, folder, template))
            place = shlex.quote(f"{target}/{template}.img")
            await context.sh(
                f"set -e; cp --reflink=auto {image} {place}.partial; cmp {image} {place}.partial; "
                f"chmod 644 {place}.partial; mv -f {place}.partial {place}",
                timeout_s=_COPY_S,
            )
            published.append(f"{target}/{template}.img")
        updates = {"published": published}
        return ActionResult(
            success=True, message=f"Published {', '.join(published)}.", context_updates=updates
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchImages:
    """Fetches images that were built; one that came only in part is continued."""

    async def run(self, context: Context) -> ActionResult:
        """Copy each here and compare its checksum with that over there."""
        folder = await _folder(context)
        fetched = []
        for template in await _templates(context, folder):
            image = await _image(context, folder, template)
            said = await context.sh(f"sha256sum {shlex.quote(image)}", timeout_s=_COPY_S, as_root=False)
            target = context.options.images_folder / Path(image).name
            await _fetch(context, image, target, said.split()[0])
            fetched.append(str(target))
        updates = {"fetched": fetched}
        return ActionResult(success=True, message=f"Fetched {', '.join(fetched)}.", context_updates=updates)


async def _fetch(context: Context, image: str, target: Path, wanted: str) -> None:
    if await hash_of(target) == wanted:
        return
    partial = target.with_name(f"{target.name}.partial")
    before = await hash_of(partial)
    await context.machine.receive(image, partial)
    if before and await hash_of(partial) != wanted:
        # What was left of an earlier run belongs to an image that was built again since.
        partial.unlink()
        await context.machine.receive(image, partial)
    if (actual := await hash_of(partial)) != wanted:
        partial.unlink()
        raise PhaseFailedError(
            f"{image} did not arrive as it is: its SHA-256 is {wanted} there and {actual} here."
        )
    partial.replace(target)


def _own_folder(context: Context) -> Path:
    """Return the folder of packer on this machine: the one said, or beside the site."""
    said = context.options.packer_source
    candidates = [said] if said is not None else [Path("packer"), Path("../packer")]
    if said is None and context.site is not None:
        candidates.append(context.site.root.parent / "packer")
    for folder in candidates:
        if (folder / "templates").is_dir():
            return folder.resolve()
    raise UsageError(
        f"There is no folder of packer (with `templates` in it) here: looked at "
        f"{', '.join(str(folder) for folder in candidates)}.",
        remedy="Name it with --packer-source DIR.",
    )


async def _folder(context: Context, *, is_made: bool = False) -> str:
    """Return the folder of packer on the machine: the one said, or where installations have it."""
    said = context.options.packer_dir or context.values.get("packer_folder")
    if said is None and context.machine.is_local:
        said = str(_own_folder(context))
    if said is not None:
        return str(said)
    script = (
        f'for folder in {" ".join(_FOLDERS)}; do [ -d "$folder/templates" ] && echo "$folder"; done; true'
    )
    found = (await context.sh(script, as_root=False)).split("\n")[0].strip()
    if found:
        return found
    if is_made:
        return _FOLDERS[0]
    raise MachineUnfitError(
        f"There is no folder of packer on {context.machine.shown}: looked at {', '.join(_FOLDERS)}.",
        remedy="Run `packer-sync` first, or name it with --packer-dir.",
    )


async def _templates(context: Context, folder: str) -> dict[str, str]:
    """Return the images that are meant, all where none is named, each with the file of its template.

    That is `templates/NAME/template.pkr.hcl`, or `templates/NAME.pkr.hcl`.
    """
    listed = await context.sh(
        f"cd {shlex.quote(folder)} && ls templates/*/{_TEMPLATE_FILE} templates/*{_SUFFIX} 2>/dev/null; true",
        as_root=False,
    )
    known: dict[str, str] = {}
    for path in listed.splitlines():
        folder_name, _, name = path.strip().removeprefix("templates/").rpartition("/")
        known.setdefault(folder_name or name.removesuffix(_SUFFIX), path.strip())
    wanted = list(context.options.templates) or list(known)
    if unknown := [name for name in wanted if name not in known]:
        raise UsageError(
            f"There is no template {', '.join(unknown)} in {folder} on {context.machine.shown}; "
            f"there is {', '.join(known) or 'none'}."
        )
    return {name: known[name] for name in wanted}


async def _image(context: Context, folder: str, template: str) -> str:
    """Return the image that was built from a template last."""
    said = await context.sh(
        f'cd {shlex.quote(folder)} && find "$PWD" -type f \\( -name {shlex.quote(f"{template}.qcow2")} '
        f"-o -name {shlex.quote(f'{template}.img')} \\) -printf '%T@ %p\\n' | sort -rn | head -n 1",
        as_root=False,
    )
    path = said.strip().partition(" ")[2]
    if not path:
        raise PhaseFailedError(f"No image {template}.qcow2 is in {folder} on {context.machine.shown}.")
    return path


async def iso_folder(context: Context) -> str:
    """Return where images go: the storage `local`, as the machine itself says."""
    said = await context.sh("pvesm path local:iso/x.img 2>/dev/null || echo /var/lib/vz/template/iso/x.img")
    return said.strip().splitlines()[-1].rpartition("/")[0]
