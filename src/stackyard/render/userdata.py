"""Cloud-init data that Proxmox's own settings cannot say, as snippets of the model.

Proxmox sets one user, its keys and its password, addresses and name servers. More users, packages, commands,
a time zone or sudo rights need user data of our own, which then replaces Proxmox's whole: so it says
everything that Proxmox would have said, too.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from stackyard.desired import CloudInit, DeclaredFile, Desired, Inline, Secret, Snippet, User, Vm
from stackyard.render.names import DATA_FIELDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stackyard.desired import Text
    from stackyard.render.terms import Json

__all__ = ["cloud_config", "is_generated", "with_data_files"]

_NOT_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")


def with_data_files(desired: Desired, scope: str) -> Desired:
    """Return the model with every inline or generated piece of cloud-init data as a file of its own.

    Args:
        desired: The model.
        scope: Tells the files of this model from those of others on the same storage.
    """
    snippets = [snippet for vm in desired.vms for snippet in _snippets(vm, scope)]
    vms = tuple(_with_references(vm) for vm in desired.vms)
    return desired.model_copy(update={"vms": vms, "files": (*desired.files, *snippets)})


def _data(vm: Vm) -> dict[str, Text]:
    """Return the data of a guest that has to become files, by its field."""
    init = vm.cloud_init
    if init is None:
        return {}
    given = {field: getattr(init, field) for field in DATA_FIELDS}
    texts = {field: data.text for field, data in given.items() if isinstance(data, Inline)}
    if init.user_data is None and _needs_user_data(init):
        texts["user_data"] = cloud_config(vm, init)
    return texts


def _snippets(vm: Vm, scope: str) -> Iterator[Snippet]:
    if vm.cloud_init is None:
        return
    for field, text in _data(vm).items():
        yield Snippet(
            kind="snippet",
            key=f"{vm.key}/{field}",
            node=vm.node,
            datastore=vm.cloud_init.snippets,
            file_name=f"{_file_stem(vm, scope)}{_ending(field)}",
            content=text,
        )


def _file_stem(vm: Vm, scope: str) -> str:
    """Return what the files of a guest are called after.

    The vm id is the only one on its cluster and outlives a change of the key, which would otherwise
    replace the guest. Without one, two targets may each have a guest of the same key.
    """
    return f"vm-{vm.vm_id}" if vm.vm_id is not None else _clean(f"{scope}-{vm.key}".strip("-"))


def is_generated(name: str, field: str, *, scope: str, vm_id: object) -> bool:
    """Tell whether the file of a guest's cloud-init data was generated, and so belongs to this guest alone.

    Args:
        name: The name of the file.
        field: Which data it is.
        scope: That of the model.
        vm_id: The id of the guest.
    """
    ending = _ending(field)
    is_of_scope = bool(scope) and name.startswith(_clean(f"{scope}-"))
    return name == f"vm-{vm_id}{ending}" or (is_of_scope and name.endswith(ending))


def _ending(field: str) -> str:
    return f"-{field.replace('_', '-')}.yaml"


def _clean(text: str) -> str:
    """Replace the characters of a key that names of files on a storage do not have."""
    return re.sub(r"[^A-Za-z0-9_.-]", "-", text)


def _with_references(vm: Vm) -> Vm:
    changes = {field: DeclaredFile(file=f"{vm.key}/{field}") for field in _data(vm)}
    if vm.cloud_init is None or not changes:
        return vm
    return vm.model_copy(update={"cloud_init": vm.cloud_init.model_copy(update=changes)})


def _needs_user_data(init: CloudInit) -> bool:
    has_more = bool(init.packages or init.commands or init.files or init.timezone or len(init.users) > 1)
    has_more = has_more or init.host_key is not None
    return has_more or any(user.sudo or user.groups or user.shell for user in init.users)


def cloud_config(vm: Vm, init: CloudInit) -> Text:
    """Return user data: one key a line, its value as JSON, which is YAML."""
    domain = vm.dns.domain if vm.dns is not None else None
    config: dict[str, Json] = {"hostname": vm.name.partition(".")[0], "manage_etc_hosts": True}
    if domain is not None or "." in vm.name:
        config["fqdn"] = vm.name if domain is None or "." in vm.name else f"{vm.name}.{domain}"
    config["users"] = [_user(user) for user in init.users]
    if init.host_key is not None:
        pair = {"ed25519_private": (init.host_key.private,), "ed25519_public": init.host_key.public}
        config["ssh_keys"] = pair
    if init.timezone is not None:
        config["timezone"] = init.timezone
    if init.upgrade:
        config["package_upgrade"] = True
    if init.packages:
        config |= {"package_update": True, "packages": list(init.packages)}
    if init.files:
        config["write_files"] = [
            {"path": file.path, "content": file.content, "permissions": file.mode, "owner": file.owner}
            for file in init.files
        ]
    if init.commands:
        config["runcmd"] = list(init.commands)
    lines: list[str | Secret] = ["#cloud-config\n"]
    for key, value in config.items():
        lines += [f"{key}: ", *_encode(value), "\n"]
    return _join(lines)


def _user(user: User) -> dict[str, Json]:
    sudo = {False: None, True: "ALL=(ALL) ALL", "nopasswd": "ALL=(ALL) NOPASSWD:ALL"}[user.sudo]
    values = {
        "name": user.name,
        "ssh_authorized_keys": list(user.keys) or None,
        "sudo": sudo,
        "groups": list(user.groups) or None,
        # Anyone who has no shell named gets one that can be used.
        "shell": user.shell or "/bin/bash",
        "lock_passwd": user.password is None,
        "hashed_passwd": user.password and (user.password,),
    }
    return {key: value for key, value in values.items() if value is not None}


def _encode(value: Json) -> Iterator[str | Secret]:
    """Return a value as JSON, in parts where secrets are in it; a tuple is a text in parts."""
    if isinstance(value, tuple):
        yield '"'
        for part in value:
            yield part.model_copy(update={"is_escaped": True}) if isinstance(part, Secret) else _escape(part)
        yield '"'
    elif isinstance(value, dict):
        yield from _enclose("{", "}", [[f"{_quote(key)}: ", *_encode(inner)] for key, inner in value.items()])
    elif isinstance(value, list):
        yield from _enclose("[", "]", [list(_encode(inner)) for inner in value])
    else:
        yield _quote(value) if isinstance(value, str) else json.dumps(value)


def _enclose(begin: str, end: str, items: Sequence[Sequence[str | Secret]]) -> Iterator[str | Secret]:
    yield begin
    for index, item in enumerate(items):
        if index:
            yield ", "
        yield from item
    yield end


def _quote(text: str) -> str:
    """Return a text as JSON that is YAML too: what YAML refuses, or takes for a line end, is escaped."""
    return _NOT_YAML.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(text, ensure_ascii=False))


def _escape(text: str) -> str:
    return _quote(text)[1:-1]


def _join(parts: Sequence[str | Secret]) -> Text:
    """Return parts with neighbouring texts made one; a text alone where no secret is among them."""
    joined: list[str | Secret] = []
    for part in parts:
        if isinstance(part, str) and joined and isinstance(joined[-1], str):
            joined[-1] += part
        else:
            joined.append(part)
    first = joined[0]
    return first if len(joined) == 1 and isinstance(first, str) else tuple(joined)
