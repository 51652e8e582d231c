"""`cloud-init`: applies what the lab hands in (once for each instance), and shows how that went."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from typing import Any

from . import cloudinit
from .accounts import replace_file
from .cloudlog import Journal

__all__ = ["run"]

_STATUS = "/run/cloud-init/status.json"
_RESULT = "/run/cloud-init/result.json"
_INSTANCE = "/var/lib/cloud/data/instance-id"


def run(name: str, words: list[str]) -> int:
    """Do one of its verbs."""
    verb = next((word for word in words if not word.startswith("-")), "")
    if name != "cloud-init":
        print("nocloud")
        return 0
    if verb == "lab-apply":
        return _apply(json.load(sys.stdin))
    if verb == "status":
        return _status(words)
    if verb == "query":
        found = _load("/run/cloud-init/instance-data.json")
        key = words[-1]
        value = found.get(key.partition(".")[2] or key, found.get(key, ""))
        print(value if isinstance(value, str) else json.dumps(value, indent=1))
        return 0
    if verb == "clean":
        for path in (_INSTANCE, _STATUS, _RESULT):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        return 0
    if "--version" in words or "-v" in words:
        print("/usr/bin/cloud-init 22.4.2")
        return 0
    sys.stderr.write(f"cloud-init: '{verb}' is not among the verbs of the lab (status, query, clean)\n")
    return 2


def _apply(data: dict[str, Any]) -> int:
    """Apply what Proxmox or cloud-init says; problems are in the log and the status, and end nothing."""
    began = time.time()
    if data.get("kind") == "container":
        cloudinit.apply_container(data)
        return 0
    if data.get("kind") != "nocloud":
        return 0
    journal = Journal()
    _save_status("running", began, [])
    identity = str(data["instance_id"])
    before = _read(_INSTANCE)
    journal.info(
        "util.py", f"Cloud-init v. 22.4.2 running 'init' at {time.strftime('%a, %d %b %Y %H:%M:%S +0000')}"
    )
    instance_data = {"instance_id": identity, "v1": {"instance_id": identity, "cloud_name": "nocloud"}}
    replace_file("/run/cloud-init/instance-data.json", json.dumps(instance_data))
    cloudinit.apply(data, journal, is_new=before != identity)
    os.makedirs(f"/var/lib/cloud/instances/{identity}", exist_ok=True)
    with contextlib.suppress(FileNotFoundError):
        os.unlink("/var/lib/cloud/instance")
    os.symlink(f"/var/lib/cloud/instances/{identity}", "/var/lib/cloud/instance")
    replace_file(f"/var/lib/cloud/instances/{identity}/user-data.txt", str(data.get("user_text", "")), 0o600)
    replace_file(f"/var/lib/cloud/instances/{identity}/boot-finished", f"{time.time()}\n")
    replace_file(_INSTANCE, f"{identity}\n")
    journal.say(
        f"Cloud-init v. 22.4.2 finished at {time.strftime('%a, %d %b %Y %H:%M:%S +0000', time.gmtime())}."
        f" Datasource DataSourceNoCloud [seed=/dev/sr0][dsmode=net]."
        f"  Up {time.time() - began + 1:.2f} seconds"
    )
    _save_status("done", began, journal.errors)
    return 0


def _save_status(state: str, began: float, errors: list[str]) -> None:
    ended = None if state == "running" else time.time()
    datasource = "DataSourceNoCloud [seed=/dev/sr0][dsmode=net]"
    stages = {
        name: {"errors": errors if name == "modules-final" else [], "start": began, "finished": ended}
        for name in ("init-local", "init", "modules-config", "modules-final")
    }
    stage = "modules-final" if state == "running" else None
    replace_file(_STATUS, json.dumps({"v1": {"datasource": datasource, "stage": stage, **stages}}))
    if ended is not None:
        replace_file(_RESULT, json.dumps({"v1": {"datasource": datasource, "errors": errors}}))


def _status(words: list[str]) -> int:
    waits = "--wait" in words or "-w" in words
    while True:
        found = _load(_STATUS).get("v1", {})
        finished = bool(_load(_RESULT))
        if not waits or finished or not found:
            break
        # The one that works writes a file when it is done; nothing tells us but the file.
        time.sleep(0.1)
        sys.stdout.write(".")
        sys.stdout.flush()
    if waits and found:
        print()
    errors = found.get("modules-final", {}).get("errors", [])
    state = "disabled" if not found else "running" if not finished else "error" if errors else "done"
    if "json" in words or "--format=json" in words:
        print(json.dumps({"status": state, "errors": errors, "datasource": "nocloud"}, indent=1))
    else:
        print(f"status: {state}")
        if "--long" in words or "-l" in words:
            print(
                f"boot_status_code: enabled-by-generator\ndetail:\n"
                f"{chr(10).join(errors) or found.get('datasource', '')}"
            )
    return 1 if state == "error" else 0


def _load(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as stream:
            found = json.load(stream)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as stream:
            return stream.read().strip()
    except OSError:
        return ""
