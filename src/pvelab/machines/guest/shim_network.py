"""`ip`, `ss`, `ping` and their kin: the addresses that the guest has in the lab."""

from __future__ import annotations

import ipaddress
import json
import sys
from typing import Any

from . import wire
from .facts import load as load_facts

__all__ = ["run"]

_REFUSED = 2


def run(name: str, words: list[str]) -> int:
    """Answer for one of them."""
    if name == "ip":
        return _ip(words)
    if name == "ping":
        return _ping(words)
    if name in ("ss", "netstat"):
        print("State   Recv-Q  Send-Q  Local Address:Port  Peer Address:Port  Process")
        print(
            "LISTEN  0       128     0.0.0.0:22          0.0.0.0:*\n"
            "LISTEN  0       128     [::]:22             [::]:*"
        )
        return 0
    if name == "ifconfig":
        for interface in _interfaces():
            print(f"{interface['name']}: flags=4163<UP,BROADCAST,RUNNING,MULTICAST>  mtu 1500")
            for one in interface["addresses"]:
                print(f"        {one['family']} {one['address']}  prefixlen {one['prefix']}")
        return 0
    if name == "resolvectl":
        print(f"Global\n  DNS Servers: {' '.join(load_facts().get('nameservers', []))}")
    return 0


def _interfaces() -> list[dict[str, Any]]:
    found = load_facts().get("interfaces", [])
    return list(found)


def _ip(words: list[str]) -> int:
    flags = {word for word in words if word.startswith("-")}
    rest = [word for word in words if not word.startswith("-")]
    what = rest[0] if rest else "help"
    as_json = bool(flags & {"-j", "-json", "--json"})
    verb = rest[1] if len(rest) > 1 else "show"
    if verb not in ("show", "list", "ls", "get", "s", "l", "sh", "dev") and not what.startswith("-"):
        sys.stderr.write("RTNETLINK answers: Operation not permitted\n")
        return _REFUSED
    family = "inet" if "-4" in flags else "inet6" if "-6" in flags else None
    if what.startswith("a"):
        return _addresses(_read_device(rest), family, as_json=as_json, brief=bool(flags & {"-br", "-brief"}))
    if what.startswith("l"):
        return _links(_read_device(rest), as_json=as_json)
    if what.startswith("r"):
        return _routes(rest, family, as_json=as_json)
    if what.startswith("n"):
        print("[]" if as_json else "", end="\n" if as_json else "")
        return 0
    sys.stderr.write(f'Object "{what}" is unknown, try "ip help".\n')
    return 1


def _read_device(rest: list[str]) -> str:
    if "dev" in rest[:-1]:
        return rest[rest.index("dev") + 1]
    words = [
        word
        for word in rest[1:]
        if word not in ("show", "list", "ls", "dev", "s", "l", "sh", "up", "scope", "global")
    ]
    return words[0] if words else ""


def _row(number: int, interface: dict[str, Any], family: object) -> dict[str, Any]:
    loop = interface["name"] == "lo"
    flags = ["LOOPBACK", "UP", "LOWER_UP"] if loop else ["BROADCAST", "MULTICAST", "UP", "LOWER_UP"]
    shown = []
    for one in interface["addresses"]:
        if family in (None, one["family"]):
            link = one["address"].startswith("fe80")
            entry = {"family": one["family"], "local": one["address"], "prefixlen": one["prefix"]}
            if one["family"] == "inet" and not loop:
                network = ipaddress.ip_interface(f"{one['address']}/{one['prefix']}").network
                entry["broadcast"] = str(network.broadcast_address)
            entry["scope"] = "host" if loop else "link" if link else "global"
            entry["label"] = interface["name"]
            shown.append(entry)
    return {
        "ifindex": number,
        "ifname": interface["name"],
        "flags": flags,
        "mtu": 65536 if loop else 1500,
        "qdisc": "noqueue" if loop else "fq_codel",
        "operstate": "UNKNOWN" if loop else "UP",
        "group": "default",
        "txqlen": 1000,
        "link_type": "loopback" if loop else "ether",
        "address": interface["mac"],
        "broadcast": "00:00:00:00:00:00" if loop else "ff:ff:ff:ff:ff:ff",
        "addr_info": shown,
    }


def _rows(name: str, family: object) -> list[dict[str, Any]]:
    found = [_row(number, one, family) for number, one in enumerate(_interfaces(), 1)]
    return [row for row in found if not name or row["ifname"] == name]


def _addresses(name: str, family: object, *, as_json: bool, brief: bool) -> int:
    rows = _rows(name, family)
    if name and not rows:
        sys.stderr.write(f'Device "{name}" does not exist.\n')
        return 1
    if as_json:
        print(json.dumps(rows))
        return 0
    for row in rows:
        if brief:
            listed = " ".join(f"{one['local']}/{one['prefixlen']}" for one in row["addr_info"])
            print(f"{row['ifname']:<16} {row['operstate']:<14} {listed}")
            continue
        _print_link(row)
        for one in row["addr_info"]:
            broadcast = f" brd {one['broadcast']}" if "broadcast" in one else ""
            label = f" {one['label']}" if one["family"] == "inet" else ""
            print(
                f"    {one['family']} {one['local']}/{one['prefixlen']}{broadcast}"
                f" scope {one['scope']}{label}"
            )
            print("       valid_lft forever preferred_lft forever")
    return 0


def _print_link(row: dict[str, Any]) -> None:
    print(
        f"{row['ifindex']}: {row['ifname']}: <{','.join(row['flags'])}> mtu {row['mtu']} qdisc {row['qdisc']}"
        f" state {row['operstate']} group default qlen 1000"
    )
    print(f"    link/{row['link_type']} {row['address']} brd {row['broadcast']}")


def _links(name: str, *, as_json: bool) -> int:
    rows = _rows(name, None)
    if name and not rows:
        sys.stderr.write(f'Device "{name}" does not exist.\n')
        return 1
    if as_json:
        print(json.dumps([{key: value for key, value in row.items() if key != "addr_info"} for row in rows]))
    else:
        for row in rows:
            _print_link(row)
    return 0


def _routes(rest: list[str], family: object, *, as_json: bool) -> int:
    version = 6 if family == "inet6" else 4
    found: list[dict[str, Any]] = []
    for gateway in load_facts().get("gateways", []):
        if ipaddress.ip_address(gateway["via"]).version == version:
            found.append(
                {"dst": "default", "gateway": gateway["via"], "dev": gateway["interface"], "flags": []}
            )
    for interface in _interfaces():
        for one in interface["addresses"]:
            address = ipaddress.ip_interface(f"{one['address']}/{one['prefix']}")
            if interface["name"] != "lo" and address.version == version:
                row = {
                    "dst": str(address.network),
                    "dev": interface["name"],
                    "protocol": "kernel",
                    "scope": "link",
                }
                found.append({**row, "prefsrc": one["address"], "flags": []})
    if len(rest) > 2 and rest[1] == "get":
        found = _route_to(rest[2], found)
        if not found:
            sys.stderr.write("RTNETLINK answers: Network is unreachable\n")
            return _REFUSED
    if "default" in rest:
        found = [row for row in found if row["dst"] == "default"]
    if as_json:
        print(json.dumps(found))
        return 0
    for row in found:
        via = f" via {row['gateway']}" if "gateway" in row else ""
        proto = " proto kernel scope link" if "protocol" in row else ""
        source = f" src {row['prefsrc']}" if "prefsrc" in row else ""
        print(f"{row['dst']}{via} dev {row['dev']}{proto}{source}")
    return 0


def _route_to(text: str, routes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    address = ipaddress.ip_address(text)
    own = {row["dev"]: row["prefsrc"] for row in routes if "prefsrc" in row}
    for row in routes:
        if row["dst"] != "default" and address in ipaddress.ip_network(row["dst"]):
            return [{"dst": text, "dev": row["dev"], "prefsrc": row["prefsrc"], "flags": []}]
    default = next((row for row in routes if row["dst"] == "default"), None)
    if default is None:
        return []
    return [
        {
            "dst": text,
            "gateway": default["gateway"],
            "dev": default["dev"],
            "prefsrc": own.get(default["dev"], ""),
            "flags": [],
        }
    ]


def _ping(words: list[str]) -> int:
    takes = ("-c", "-W", "-w", "-i", "-s", "-I", "-t", "-Q", "-m", "-p")
    target, count = "", 4
    waiting = iter(words)
    for word in waiting:
        if word in takes:
            value = next(waiting, "")
            if word == "-c" and value.isdigit():
                count = int(value)
        elif word.startswith("-c") and word[2:].isdigit():
            count = int(word[2:])
        elif not word.startswith("-"):
            target = word
    address = _resolve(target)
    if address is None:
        sys.stderr.write(f"ping: {target}: Temporary failure in name resolution\n")
        return 2
    own = [one["address"] for interface in _interfaces() for one in interface["addresses"]]
    answers = address in own or bool(
        wire.ask({"do": "lab", "ask": {"what": "reach", "address": address}}).get("answer")
    )
    print(f"PING {target} ({address}) 56(84) bytes of data.")
    if answers:
        for number in range(1, count + 1):
            print(f"64 bytes from {address}: icmp_seq={number} ttl=64 time=0.05 ms")
    lost = 0 if answers else 100
    print(f"\n--- {target} ping statistics ---")
    print(f"{count} packets transmitted, {count if answers else 0} received, {lost}% packet loss, time 0ms")
    return 0 if answers else 1


def _resolve(name: str) -> object:
    try:
        return str(ipaddress.ip_address(name))
    except ValueError:
        pass
    with open("/etc/hosts", encoding="utf-8") as stream:
        for line in stream:
            words = line.split("#")[0].split()
            if name in words[1:]:
                return words[0]
    return None
