"""A plan for a human: lost things first, files below their guests, values side by side."""

from __future__ import annotations

import io
from typing import Any

from stackyard.cli.views.planned_changes import list_destroyed, show_changes
from stackyard.cli.views.text_writer import TextWriter
from stackyard.engine.changes import Action, Change, Changes, Difference

VM, FILE, DOWNLOAD = (
    "proxmox_virtual_environment_vm",
    "proxmox_virtual_environment_file",
    "proxmox_download_file",
)


WEB = "      2 cores, 2 GiB memory, scsi0 10 GiB on local-lvm from debian-12.qcow2, vmbr0 VLAN 20, tags web"


def vm(name: str, vm_id: int, action: Action = Action.CREATE, **other: Any) -> Change:
    values = {
        "name": name,
        "vm_id": vm_id,
        "node_name": "pve1",
        "cpu": [{"cores": 2, "sockets": 1}],
        "memory": [{"dedicated": 2048}],
        "disk": [
            {
                "interface": "scsi0",
                "size": 10,
                "datastore_id": "local-lvm",
                "import_from": "local:import/debian-12.qcow2",
            }
        ],
        "network_device": [{"bridge": "vmbr0", "vlan_id": 20}],
        "initialization": [{"user_data_file_id": f"local:snippets/vm-{vm_id}.yaml"}],
        "tags": ["web"],
    }
    before = None if action is Action.CREATE else values
    after = None if action is Action.DELETE else values
    return Change(
        address=f"{VM}.{name}", kind=VM, name=name, action=action, before=before, after=after, **other
    )


def snippet(vm_id: int, action: Action = Action.CREATE, **other: Any) -> Change:
    values = {
        "datastore_id": "local",
        "content_type": "snippets",
        "source_raw": [{"file_name": f"vm-{vm_id}.yaml", "data": "x"}],
    }
    before = None if action is Action.CREATE else values
    after = None if action is Action.DELETE else values
    label = f"user_data_{vm_id}"
    return Change(
        address=f"{FILE}.{label}", kind=FILE, name=label, action=action, before=before, after=after, **other
    )


def image(**values: Any) -> Change:
    after = {"datastore_id": "local", "content_type": "import", "file_name": "debian-12.qcow2"}
    after |= {"node_name": "pve1", **values}
    return Change(address=f"{DOWNLOAD}.image", kind=DOWNLOAD, name="image", action=Action.CREATE, after=after)


def shown(*changes: Change, redact: Any = str) -> list[str]:
    stream = io.StringIO()
    show_changes(TextWriter(stream, colour=False), Changes(planned=changes), redact)
    return stream.getvalue().splitlines()


def test_a_created_guest_shows_what_it_gets_and_its_own_files_below() -> None:
    assert shown(vm("web", 100), snippet(100), image()) == [
        "+ create   VM web (100 on pve1)",
        WEB,
        "      + file user_data_100",
        "      + file debian-12.qcow2",
        "",
        "Plan: 3 to create.",
    ]


def test_a_file_of_several_guests_names_them() -> None:
    lines = shown(*(vm(f"web-{i}", 100 + i) for i in range(6)), image(url="https://example.org/d.qcow2"))
    assert "+ create   file debian-12.qcow2  for web-0, web-1, web-2, web-3 and 2 more" in lines
    assert "      from https://example.org/d.qcow2, to local on pve1" in lines


def test_what_is_lost_comes_first() -> None:
    resized = vm(
        "db",
        102,
        Action.REPLACE,
        differences=(Difference(path=("disk", 0, "size"), before=10, after=8, forces_replace=True),),
    )
    renamed = vm(
        "app",
        103,
        Action.UPDATE,
        differences=(
            Difference(path=("description",), before="", after="hello"),
            Difference(path=("memory", 0, "dedicated"), before=2048, after=4096),
        ),
    )
    lines = shown(vm("new", 101), renamed, resized, vm("old", 104, Action.DELETE))
    assert lines == [
        "- destroy  VM old (104 on pve1)",
        "      loses scsi0 10 GiB on local-lvm",
        "± replace  VM db (102 on pve1)",
        "      loses scsi0 10 GiB on local-lvm",
        "      disk[0].size  10  ->  8  (forces replacement)",
        "~ change   VM app (103 on pve1)",
        "      description          ''    ->  'hello'",
        "      memory[0].dedicated  2048  ->  4096",
        "+ create   VM new (101 on pve1)",
        WEB,
        "",
        "Plan: 1 to destroy, 1 to replace, 1 to change, 1 to create.",
    ]


def test_something_lost_is_never_hidden_below_something_that_is_made() -> None:
    lines = shown(vm("web", 100), snippet(100, Action.DELETE))
    assert lines[0] == "- destroy  file user_data_100"


def test_a_text_shows_the_lines_that_change() -> None:
    texts = Difference(
        path=("source_raw", 0, "data"), before="a: 1\nb: 2\nc: 3\n", after="a: 1\nb: 4\nc: 3\n"
    )
    assert shown(snippet(100, Action.UPDATE, differences=(texts,)))[1:4] == [
        "      source_raw[0].data:",
        "        -b: 2",
        "        +b: 4",
    ]


def test_a_secret_in_an_attribute_is_masked() -> None:
    lines = shown(
        image(url="https://user:hunter2@example.org"), redact=lambda text: text.replace("hunter2", "***")
    )
    assert "hunter2" not in "\n".join(lines)
    assert "***" in "\n".join(lines)


def test_a_question_names_what_is_destroyed_and_counts_files() -> None:
    changes = Changes(
        planned=(
            vm("new", 101),
            vm("old", 104, Action.DELETE),
            snippet(104, Action.DELETE),
            vm("db", 102, Action.REPLACE),
        )
    )
    assert list_destroyed(changes) == [
        "destroys VM old (104 on pve1)",
        "replaces VM db (102 on pve1)",
        "destroys or replaces 1 file",
    ]


def test_logins_and_signatures_in_urls_are_not_shown() -> None:
    url = "https://bob:hunter2@files.example.org/img.qcow2?X-Amz-Signature=SECRET&part=1"
    changed = Difference(path=("url",), before=url, after=url.replace("hunter2", "newpass"))
    replaced = image()
    values = {**(replaced.after or {}), "url": url}
    lines = shown(
        Change(
            address=replaced.address,
            kind=replaced.kind,
            name="image",
            action=Action.REPLACE,
            before=values,
            after=values,
            differences=(changed,),
        ),
        *(vm(f"web-{i}", 100 + i) for i in range(2)),
    )
    text = "\n".join([*lines, *shown(image(url=url))])
    assert "hunter2" not in text
    assert "newpass" not in text
    assert "SECRET" not in text
    assert "https://***@files.example.org/img.qcow2?X-Amz-Signature=***&part=***" in text
