"""References lead to something: hosts, nodes, templates, presets, postures, specs, keys, tokens, networks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.base.diagnostics import Kind, Severity
from stackyard.base.errors import Location
from stackyard.base.suggestions import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stackyard.base.diagnostics import Diagnostics
    from stackyard.sources.site.document import Key, LocatedValues
    from stackyard.sources.site.load import Site

__all__ = ["check_references"]

DANGLING = Kind(
    code="E-SITE-REFERENCE",
    summary="A reference leads nowhere",
    remedy="Correct the name, or add what it names.",
)
NO_SECRETS = Kind(
    code="W-SITE-NO-SECRETS",
    summary="There are no secrets",
    remedy="Add secrets.yaml (`stackyard secrets edit`); until then nothing that needs a secret can run.",
    severity=Severity.WARNING,
)
RUN_IGNORED = Kind(
    code="W-SITE-SPEC-RUN",
    summary="`run` of a spec has no effect",
    remedy="Remove it, or run `stackyard spec apply` from a timer of the guest.",
    severity=Severity.WARNING,
)


class _References:
    """Looks names up and adds a finding for each that is not there."""

    def __init__(self, site: Site, found: Diagnostics) -> None:
        self._site = site
        self._found = found

    def to_file(
        self, kind: str, name: str | None, places: LocatedValues, path: tuple[Key, ...], *, note: str = ""
    ) -> None:
        """Check a name of another file; one that is there and wrong has findings of its own."""
        if name is None:
            return
        table: Mapping[str, object] = getattr(self._site, kind)
        if name in table or name in self._site.broken[kind] or self._is_flat(kind, name):
            return
        one = kind.removesuffix("s")
        said = f"There is no {one} '{name}'. {note}".rstrip()
        self._add(said, name, {*table, *self._flat(kind)}, places, path)

    def to_name(
        self, what: str, name: str, known: Iterable[str], places: LocatedValues, path: tuple[Key, ...]
    ) -> None:
        """Check a name of something inside a file."""
        if name not in known:
            self._add(f"There is no {what} '{name}'.", name, known, places, path)

    def to_secret(self, table: str, name: str, places: LocatedValues, path: tuple[Key, ...]) -> None:
        """Check a name of a secret, where the secrets can be read."""
        if self._site.secrets.is_known:
            known = getattr(self._site.secret_values, table)
            self.to_name(f"`{table}` in secrets.yaml", name, known, places, path)

    def _flat(self, kind: str) -> Iterable[str]:
        return self._site.flat_postures if kind == "postures" else ()

    def _is_flat(self, kind: str, name: str) -> bool:
        return name in self._flat(kind)

    def _add(
        self, detail: str, name: str, known: Iterable[str], places: LocatedValues, path: tuple[Key, ...]
    ) -> None:
        self._found.add(DANGLING, f"{detail}{did_you_mean(name, known)}", places.place(path))


def check_references(site: Site, found: Diagnostics) -> None:
    """Check every reference of every file."""
    references = _References(site, found)
    if site.secrets.is_absent and (site.nodes or site.envs):
        found.add(NO_SECRETS, f"{site.root} has no secrets.yaml.", Location(str(site.root / "secrets.yaml")))
    _check_nodes(site, references)
    _check_templates(site, references)
    _check_specs(site, references, found)
    _check_envs(site, references)


def _check_nodes(site: Site, references: _References) -> None:
    # A login to a cluster makes its token; until then, whoever needs the token gets an error.
    has_hypervisors = bool(site.hypervisors or site.broken["hypervisors"])
    for name, node in site.nodes.items():
        references.to_file("hosts", node.model.host, node.places, ("host",))
        references.to_file("nodes", node.model.parent_node, node.places, ("parent_node",))
        if not has_hypervisors:
            references.to_secret("api_tokens", node.model.api_token or name, node.places, ("api_token",))
    for host in site.hosts.values():
        for index, key in enumerate(host.model.access.authorized_keys):
            if " " not in key:
                path = ("access", "authorized_keys", index)
                references.to_secret("ssh_keys", key.removeprefix("ssh_keys."), host.places, path)


def _check_templates(site: Site, references: _References) -> None:
    for template in site.templates.values():
        for key, kind in (("preset", "presets"), ("vm_preset", "presets"), ("spec", "specs")):
            references.to_file(kind, template.places.data.get(key), template.places, (key,))


def _check_specs(site: Site, references: _References, found: Diagnostics) -> None:
    for spec in site.specs.values():
        references.to_file("postures", spec.model.access.posture, spec.places, ("access", "posture"))
        for number, user in enumerate(spec.model.access.users):
            for index, key in enumerate(user.ssh_keys or ()):
                path = ("access", "users", number, "ssh_keys", index)
                references.to_secret("ssh_keys", key.removeprefix("ssh_keys."), spec.places, path)
        if spec.model.run is not None:
            found.add(RUN_IGNORED, f"The spec '{spec.name}' has `run`.", spec.places.key_place(("run",)))


_OF_GUESTS = {
    "template": "templates",
    "preset": "presets",
    "vm_preset": "presets",
    "spec": "specs",
    "node": "nodes",
}


def _check_envs(site: Site, references: _References) -> None:
    for env in site.envs.values():
        is_default = "posture" not in env.places.data
        note = "The env names none, so this is the default: write `posture: NAME`." if is_default else ""
        references.to_file("postures", env.model.posture, env.places, ("posture",), note=note)
        references.to_file("nodes", env.model.node, env.places, ("node",))
        for index, entry in enumerate(env.places.data["vms"]):
            for key in _OF_GUESTS.keys() & entry.keys():
                references.to_file(_OF_GUESTS[key], entry[key], env.places, ("vms", index, key))
