"""One posture from its one or two files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.base.errors import Location
    from stackyard.sources.site.document import Key, LocatedValues
    from stackyard.sources.site.entities.postures import AuthMethod, FlatPosture, NestedPosture
    from stackyard.sources.site.load import Site
    from stackyard.sources.site.tree import LoadedFile

__all__ = ["Posture", "is_posture_known", "posture_of"]

# What Ansible calls a setting, where the nested form keeps it, and what holds where nothing is said.
_SETTINGS: dict[str, tuple[tuple[str, str], Any]] = {
    "ssh_port": (("ssh", "port"), 22),
    "ssh_permit_root_login": (("ssh", "permit_root_login"), "prohibit-password"),
    "ssh_password_authentication": (("ssh", "password_authentication"), "no"),
    "sudo_nopasswd": (("sudo", "nopasswd"), False),
    "fail2ban_enabled": (("fail2ban", "enabled"), False),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Posture:
    """A posture; where a site has it in both forms, the flat counts for Ansible, the nested for specs."""

    name: str
    flat: LoadedFile[FlatPosture] | None
    nested: LoadedFile[NestedPosture] | None

    @property
    def auth_method(self) -> AuthMethod | None:
        """How guests prove themselves; nothing where the posture does not say."""
        if self.nested is None or self.nested.model.auth is None:
            return None
        return self.nested.model.auth.method

    def settings(self, *, prefer_nested: bool = False) -> dict[str, Any]:
        """Return every setting as Ansible calls it, with what holds where nothing is said."""
        result = {}
        for key, (_, default) in _SETTINGS.items():
            said = (
                value
                for value, _, _ in self._list_values(key, prefer_nested=prefer_nested)
                if value is not None
            )
            result[key] = next(said, default)
        return result

    def read_setting(self, key: str, *, prefer_nested: bool = False) -> tuple[Any, Location | None]:
        """Return a setting and where it is written; nowhere if it is what holds by default."""
        for value, places, path in self._list_values(key, prefer_nested=prefer_nested):
            if value is not None:
                return value, places.place(path)
        return _SETTINGS[key][1], None

    def packages(self, *, prefer_nested: bool = False) -> tuple[str, ...]:
        """Return the packages that it asks for."""
        order = (self.nested, self.flat) if prefer_nested else (self.flat, self.nested)
        return next((loaded.model.packages for loaded in order if loaded is not None), ())

    def place(self, key: str | None = None) -> Location:
        """Return where it, or a setting of it, is written."""
        if key is not None and self.flat is not None:
            return self.flat.places.place((key,))
        loaded = self.nested or self.flat
        assert loaded is not None  # noqa: S101 - a posture has at least one file
        return loaded.places.place()

    def disagreements(self) -> Iterator[tuple[str, Any, Any]]:
        """Return each setting that its two files say differently: key, flat and nested value."""
        if self.flat is None or self.nested is None:
            return
        for key, (path, _) in _SETTINGS.items():
            flat, nested = getattr(self.flat.model, key), _inside(self.nested.model, path)
            if flat is not None and nested is not None and flat != nested:
                yield key, flat, nested

    def document(self) -> dict[str, Any]:
        """Return the posture in the nested form, complete: what a guest gets with its spec."""
        values = self.settings(prefer_nested=True)
        nested: dict[str, Any] = {"auth": {"method": str(self.auth_method or "network")}}
        for key, (path, _) in _SETTINGS.items():
            nested.setdefault(path[0], {})[path[1]] = values[key]
        return {**nested, "packages": list(self.packages(prefer_nested=True))}

    def _list_values(
        self, key: str, *, prefer_nested: bool
    ) -> Iterator[tuple[Any, LocatedValues, tuple[Key, ...]]]:
        said: list[tuple[Any, LocatedValues, tuple[Key, ...]]] = []
        if self.flat is not None:
            said.append((getattr(self.flat.model, key), self.flat.places, (key,)))
        if self.nested is not None:
            path = _SETTINGS[key][0]
            said.append((_inside(self.nested.model, path), self.nested.places, path))
        yield from reversed(said) if prefer_nested else said


def _inside(model: NestedPosture, path: tuple[str, str]) -> Any:
    return getattr(getattr(model, path[0]), path[1])


def posture_of(site: Site, name: str) -> Posture:
    """Return a posture that the site has."""
    return Posture(name=name, flat=site.flat_postures.get(name), nested=site.postures.get(name))


def is_posture_known(site: Site, name: str) -> bool:
    """Return whether the site has a posture, and every file of it could be read.

    One form of a posture says nothing about what the other one would say: where one of the two is wrong, it
    is not known how guests have to prove themselves.
    """
    has_one = name in site.postures or name in site.flat_postures
    return has_one and name not in site.broken["postures"]
