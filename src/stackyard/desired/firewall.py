"""The firewall of a guest: its options, its rules in their order, and names for addresses in them."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, model_validator

from stackyard.desired.firewall_words import (
    ICMP,
    WITH_PORTS,
    check_addresses,
    check_alias_address,
    check_macro,
    check_ports,
    check_protocol,
    check_set_entry,
)
from stackyard.desired.values import Line, Many, Value

__all__ = ["Firewall", "FirewallAlias", "FirewallOptions", "FirewallRule", "FirewallSet", "FirewallSetEntry"]

LogLevel = Literal["emerg", "alert", "crit", "err", "warning", "notice", "info", "debug", "nolog"]
Policy = Literal["ACCEPT", "DROP", "REJECT"]
# Proxmox keeps the names of groups and IP sets in small letters, and does not find others again.
GroupName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{1,17}$")]
SetName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{1,63}$")]
AliasName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_-]{1,63}$")]
_Ports = Annotated[str, AfterValidator(check_ports)]


def _port_text(value: Any) -> Any:
    """Take a port for a text: YAML reads it as a number."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Ports = Annotated[_Ports, BeforeValidator(_port_text, json_schema_input_type=_Ports | int)]
Addresses = Annotated[Line, AfterValidator(check_addresses)]
_NOT_OF_GROUP = ("type", "action", "macro", "source", "dest", "sport", "dport", "proto", "log")


class FirewallOptions(Value):
    """How the firewall of a guest works; a guest that has one has it on unless it says otherwise."""

    enabled: bool = True
    # None: let through where a card gets its address by DHCP, or nobody knows how it does.
    dhcp: bool | None = None
    input_policy: Policy = "DROP"
    output_policy: Policy = "ACCEPT"
    log_level_in: LogLevel = "nolog"
    log_level_out: LogLevel = "nolog"
    macfilter: bool = True
    ipfilter: bool = False
    ndp: bool = True
    radv: bool = False


class FirewallRule(Value):
    """A rule, or a security group of the cluster whose rules count here."""

    type: Literal["in", "out"] | None = None
    action: Policy | None = None
    security_group: GroupName | None = None
    macro: Annotated[str, AfterValidator(check_macro)] | None = None
    source: Addresses | None = None
    dest: Addresses | None = None
    sport: Ports | None = None
    dport: Ports | None = None
    proto: Annotated[str, AfterValidator(check_protocol)] | None = None
    # A card of the guest: net0 is the first.
    iface: Annotated[str, StringConstraints(pattern=r"^net\d+$")] | None = None
    log: LogLevel | None = None
    comment: Line | None = None
    enabled: bool = True

    @model_validator(mode="after")
    def _is_rule_or_group(self) -> Self:
        if self.security_group is None:
            missing = [f"`{name}`" for name in ("type", "action") if getattr(self, name) is None]
            if missing:
                raise ValueError(f"a rule needs {' and '.join(missing)}, or else a `security_group`")
            self._check_ports()
            return self
        surplus = [f"`{name}`" for name in _NOT_OF_GROUP if getattr(self, name) is not None]
        if surplus:
            raise ValueError(f"a security group has rules of its own: remove {', '.join(surplus)}")
        return self

    def _check_ports(self) -> None:
        said = [name for name in ("sport", "dport") if getattr(self, name) is not None]
        if self.macro is not None:
            if self.proto is not None or self.dport is not None:
                raise ValueError("a `macro` says protocol and port itself: remove `proto` and `dport`")
            return
        if said and self.proto is None:
            raise ValueError(f"`{said[0]}` needs a `proto`, such as tcp")
        is_type = said == ["dport"] and self.proto in ICMP
        if said and self.proto not in WITH_PORTS and not is_type:
            raise ValueError(f"{self.proto} has no ports: remove `{said[0]}`")


class FirewallAlias(Value):
    """A name for an address or a network."""

    cidr: Annotated[Line, AfterValidator(check_alias_address)]
    comment: Line | None = None


class FirewallSetEntry(Value):
    """An address, a network or an alias in an IP set; with `nomatch` one that is taken out of it."""

    name: Annotated[Line, AfterValidator(check_set_entry)]
    nomatch: bool = False
    comment: Line | None = None


def _wrap(attribute: str, kind: Any) -> BeforeValidator:
    """Return what takes a text or a list for the one attribute that says it all."""

    def wrap(value: Any) -> Any:
        return {attribute: value} if isinstance(value, str | list | tuple) else value

    return BeforeValidator(wrap, json_schema_input_type=kind)


_Entry = Annotated[FirewallSetEntry, _wrap("name", FirewallSetEntry | Line)]


class FirewallSet(Value):
    """Addresses, networks and aliases under a name."""

    entries: Many[_Entry] = ()
    comment: Line | None = None


_Alias = Annotated[FirewallAlias, _wrap("cidr", FirewallAlias | Line)]
_Set = Annotated[FirewallSet, _wrap("entries", FirewallSet | Many[_Entry])]


class Firewall(Value):
    """The firewall of a guest; of its cards, those with `firewall: true` are behind it."""

    options: FirewallOptions = FirewallOptions()
    # The first that fits decides.
    rules: Many[FirewallRule] = ()
    aliases: dict[AliasName, _Alias] = Field(default_factory=dict)
    ipsets: dict[SetName, _Set] = Field(default_factory=dict)

    def __hash__(self) -> int:
        # The mappings have no hash of their own.
        return hash(self.model_dump_json())

    @model_validator(mode="after")
    def _names_are_unique(self) -> Self:
        # Proxmox knows only one alias whatever the case of its letters.
        seen: dict[str, str] = {}
        for name in self.aliases:
            other = seen.setdefault(name.lower(), name)
            if other != name:
                raise ValueError(f"the aliases {other} and {name} are one to Proxmox")
        return self
