"""A whole site: read, validated, and checked against itself."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from stackyard.base import directories
from stackyard.base.diagnostics import Diagnostics
from stackyard.sources.site.checks import check_site
from stackyard.sources.site.discovery import find_site
from stackyard.sources.site.entities.postures import FlatPosture, NestedPosture
from stackyard.sources.site.entities.secrets import SecretsFile
from stackyard.sources.site.entities.site import SiteFile
from stackyard.sources.site.layers import GuestEntry, Layer, merge
from stackyard.sources.site.names import Stamp, stamp_of
from stackyard.sources.site.networks import Networks, networks_of
from stackyard.sources.site.own_code import SiteCode
from stackyard.sources.site.own_code.find import check_variables
from stackyard.sources.site.secret_values import SiteSecrets, read_site_secrets
from stackyard.sources.site.store_choice import choose_store, read_site_store
from stackyard.sources.site.tree import LoadedFile, Tree, read_tree

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.base.diagnostics import Diagnostic
    from stackyard.base.redaction import Redactor
    from stackyard.desired import CloudInit
    from stackyard.sources.site.entities.envs import EnvFile
    from stackyard.sources.site.entities.hosts import HostFile
    from stackyard.sources.site.entities.manifests import Manifest
    from stackyard.sources.site.entities.nodes import NodeFile
    from stackyard.sources.site.entities.presets import PresetFile
    from stackyard.sources.site.entities.specs import SpecFile
    from stackyard.sources.site.pull import OwnBoot
    from stackyard.sources.store import ChosenStore

__all__ = ["Site"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A site that was read. `load` refuses one that has problems; `open` keeps them for the caller."""

    root: Path
    found: Diagnostics
    file: LoadedFile[SiteFile] | None
    secrets: SiteSecrets
    hosts: dict[str, LoadedFile[HostFile]]
    nodes: dict[str, LoadedFile[NodeFile]]
    templates: dict[str, LoadedFile[Any]]
    presets: dict[str, LoadedFile[PresetFile]]
    postures: dict[str, LoadedFile[NestedPosture]]
    flat_postures: dict[str, LoadedFile[FlatPosture]]
    specs: dict[str, LoadedFile[SpecFile]]
    envs: dict[str, LoadedFile[EnvFile]]
    manifests: dict[str, LoadedFile[Manifest]]
    hypervisors: dict[str, LoadedFile[Any]]
    # Names of files that are there and wrong, by kind.
    broken: dict[str, set[str]]
    # Kind and name of every file by its path, as findings show it.
    paths: Mapping[str, tuple[str, str]]
    # What is left of those, by kind and name, to be checked and never used; `site` is site.yaml.
    damaged: Mapping[str, Mapping[str, LoadedFile[Any]]]
    _guests: dict[str, tuple[GuestEntry, ...]] = field(default_factory=dict)
    _networks: dict[str, Networks] = field(default_factory=dict)
    # First boots that were built: most guests begin alike, and these parts are many and the same.
    boots: dict[tuple[object, ...], CloudInit] = field(default_factory=dict)
    # The pin of the controller's certificate, once it was read from the store.
    pins: list[str | None] = field(default_factory=list)
    # What single guests have of their own at their first boot, by name; others have nothing of the kind.
    own_boots: Mapping[str, OwnBoot] = field(default_factory=dict)
    # The files as they were just before they were read.
    stamp: Stamp = frozenset()
    # The own code beside the envs.
    code: SiteCode = field(default_factory=SiteCode)

    @classmethod
    def load(cls, said: str | Path | None = None) -> Site:
        """Read a site in which nothing is wrong.

        Args:
            said: Its folder; found as `find_site` does when absent.

        Raises:
            SiteNotFoundError: There is none.
            InvalidInputError: Something is wrong with it; the error carries every problem.
        """
        site = cls.open(said)
        site.found.raise_errors(f"The site {site.root}")
        return site

    @classmethod
    def open(
        cls, said: str | Path | None = None, *, instead: Mapping[str, str] = MappingProxyType({})
    ) -> Site:
        """Read a site and keep what is wrong with it in `found`.

        Args:
            said: Its folder; found as `find_site` does when absent.
            instead: Texts that count in place of what files hold, by path from the folder.

        Raises:
            SiteNotFoundError: There is none.
        """
        root = find_site(said)
        stamp = stamp_of(root)
        tree = read_tree(root, instead)
        site = cls._of(tree, read_site_secrets(tree.root, tree.found))
        found = Diagnostics()
        if site.secrets.is_known or site.secrets.is_absent:
            check_variables(site.code, site.secret_values.variables, found)
        check_site(site._add_damaged() if tree.damaged else site, found)
        # A place that is wrong by itself needs no second word.
        known = {one.where for one in tree.found} if tree.damaged else set()
        tree.found.extend(one for one in found if one.where not in known)
        ordered = Diagnostics()
        ordered.extend(sorted(tree.found, key=_order))
        return dataclasses.replace(site, found=ordered, stamp=stamp)

    @classmethod
    def _of(cls, tree: Tree, secrets: SiteSecrets) -> Site:
        return cls(
            root=tree.root,
            found=tree.found,
            file=tree.site,
            secrets=secrets,
            flat_postures=tree.flat_postures,
            broken=tree.broken,
            paths=tree.paths,
            code=tree.code,
            damaged=tree.damaged,
            hosts=tree.tables["hosts"],
            nodes=tree.tables["nodes"],
            templates=tree.tables["templates"],
            presets=tree.tables["presets"],
            postures=tree.tables["postures"],
            specs=tree.tables["specs"],
            envs=tree.tables["envs"],
            manifests=tree.tables["manifests"],
            hypervisors=tree.tables["hypervisors"],
        )

    def _add_damaged(self) -> Site:
        """Return the site with what is left of files that are not valid, to be checked."""
        kinds = ("hosts", "nodes", "templates", "presets", "specs", "envs", "hypervisors")
        tables: dict[str, Any] = {
            kind: {**self.damaged.get(kind, {}), **getattr(self, kind)} for kind in kinds
        }
        file = self.file or self.damaged.get("site", {}).get("site")
        return dataclasses.replace(self, file=file, **tables, _guests={}, _networks={}, boots={})

    def is_current(self) -> bool:
        """Return whether no file of it was written, added or removed since it was read."""
        return stamp_of(self.root) == self.stamp

    @property
    def store(self) -> ChosenStore:
        """Where what runs leave is kept.

        Raises:
            InvalidInputError: It is not clear which store is meant.
        """
        return choose_store(
            self.root,
            self.root / directories.PROJECT_FOLDER,
            site_store=read_site_store(self.root) if self.found.errors else self.settings.store,
            site_key=self.secret_values.site_key,
        )

    @property
    def settings(self) -> SiteFile:
        """What site.yaml says; nothing where it is wrong."""
        return SiteFile() if self.file is None else self.file.model

    @property
    def secret_values(self) -> SecretsFile:
        """What secrets.yaml says."""
        return self.secrets.model

    def redactor(self) -> Redactor:
        """Return what masks every secret of the site in any text."""
        return self.secrets.redactor()

    def guests(self, env: str) -> tuple[GuestEntry, ...]:
        """Return the guests of an env, each merged from its layers; a layer that is not there is left out."""
        known = self._guests.get(env)
        if known is None:
            known = self._guests[env] = tuple(self._merge_guests(self.envs[env]))
        return known

    def networks(self, env: str) -> Networks:
        """Return the networks that an env can use."""
        known = self._networks.get(env)
        if known is None:
            known = self._networks[env] = networks_of(self, env)
        return known

    def _merge_guests(self, env: LoadedFile[EnvFile]) -> list[GuestEntry]:
        outer: dict[tuple[str | None, str | None], list[Layer]] = {}
        result = []
        for index, entry in enumerate(env.places.data["vms"]):
            wanted = entry.get("template"), entry.get("preset", entry.get("vm_preset"))
            if wanted not in outer:
                outer[wanted] = [*self._template_layers(wanted[0]), *self._preset_layers(wanted[1])]
            layers = [*outer[wanted], Layer(env.places, ("vms", index), entry)]
            values = merge([layer.values for layer in layers])
            result.append(GuestEntry(entry["name"], index, values, layers))
        return result

    def _template_layers(self, name: str | None) -> list[Layer]:
        template = self.templates.get(name or "")
        if template is None:
            return []
        values = template.places.data
        preset = values.get("preset", values.get("vm_preset"))
        return [*self._preset_layers(preset), Layer(template.places, (), values)]

    def _preset_layers(self, name: str | None) -> list[Layer]:
        preset = self.presets.get(name or "")
        return [] if preset is None else [Layer(preset.places, (), preset.places.data)]


def _order(finding: Diagnostic) -> tuple[str, int, int]:
    """Return what puts findings in the order of a reader: file by file, from top to bottom."""
    where = finding.where
    return ("", 0, 0) if where is None else (where.path, where.line or 0, where.column or 0)
