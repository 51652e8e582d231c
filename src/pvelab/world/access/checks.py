"""The permission expression that each call of the API carries, evaluated."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pvelab.server.params.formats import check_format
from pvelab.server.params.texts import FormatError, split_list
from pvelab.server.problems import PveError, not_permitted
from pvelab.world.access.directory import ROOT
from pvelab.world.access.permissions import Permissions, normalize_path, privileges_to_share
from stackyard.base.errors import InternalError

__all__ = ["check_call"]

Parameters = Mapping[str, Any]
Expression = Sequence[Any]

_PLACEHOLDER = re.compile(r"\{([^}]+)\}")


def check_call(
    permissions: Permissions, declared: Mapping[str, Any] | None, authid: str | None, given: Parameters
) -> None:
    """Refuse a call that its caller may not make.

    Args:
        permissions: What everyone may do.
        declared: The `permissions` of the method; None means root@pam alone.
        authid: The caller, None for no one.
        given: The parameters of the call, not verified yet: Proxmox checks permissions first.

    Raises:
        PveError: 403.
    """
    kind = None if declared is None else declared.get("user")
    if authid is None:
        if kind != "world":
            raise not_permitted("user != null")
        return
    if authid == ROOT:
        return
    if declared is None:
        raise not_permitted("user != root@pam")
    if kind in ("all", "world"):
        return
    expression = declared.get("expression", {}).get("check")
    if expression is None:
        raise not_permitted()
    _Checker(permissions, authid, given).require(expression)


class _Checker:
    """Evaluates expressions for one caller and its parameters."""

    def __init__(self, permissions: Permissions, authid: str, given: Parameters) -> None:
        self._permissions = permissions
        self._authid = authid
        self._given = given

    def require(self, expression: Expression) -> None:
        """Evaluate an expression that must hold."""
        match expression[0]:
            case "and":
                for part in expression[1:]:
                    self.require(part)
            case "or":
                if not any(self._holds(part) for part in expression[1:]):
                    raise not_permitted()
            case "perm":
                self._perm(expression)
            case "perm-modify":
                self._perm_modify(expression[1])
            case "userid-group":
                self._userid_group(expression)
            case "userid-param":
                self._userid_param(expression[1])
            case other:
                raise InternalError(
                    f"The declared API has a permission test that the lab does not know: {other}."
                )

    def _holds(self, expression: Expression) -> bool:
        try:
            self.require(expression)
        except PveError:
            return False
        return True

    def _perm(self, expression: Expression) -> None:
        _, template, privileges, *rest = expression
        options = dict(zip(rest[::2], rest[1::2], strict=True))
        needed = options.get("require_param")
        if needed and self._given.get(needed) is None:
            raise not_permitted()
        path = normalize_path(self._fill_template(template))
        if path is None:
            raise not_permitted(f"{self._fill_template(template)}, {privileges[0]}")
        self._permissions.check(self._authid, path, privileges, any_of=bool(options.get("any")))

    def _perm_modify(self, template: str) -> None:
        path = normalize_path(self._fill_template(template))
        # A path that cannot be one is the handler's to refuse.
        if path is not None:
            self._permissions.check(self._authid, path, privileges_to_share(path), any_of=True)

    def _userid_group(self, expression: Expression) -> None:
        _, privileges, *rest = expression
        parameter = dict(zip(rest[::2], rest[1::2], strict=True)).get("groups_param")
        existing = parameter != "create"
        userid = self._userid()
        if existing:
            self._permissions.directory.user(userid)
        if self._permissions.has(self._authid, "/access/groups", privileges, any_of=True):
            return
        allowed = {
            group
            for group in self._permissions.directory.groups()
            if self._permissions.has(self._authid, f"/access/groups/{group}", privileges, any_of=True)
        }
        if parameter:
            self._check_new_groups(allowed, privileges)
        if existing and not allowed & self._permissions.directory.groups_of(userid):
            raise not_permitted()

    def _check_new_groups(self, allowed: set[str], privileges: Sequence[str]) -> None:
        names = split_list(str(self._given.get("groups", "")))
        if not names:
            raise not_permitted(f"/access/groups, {'|'.join(privileges)}")
        for name in names:
            if name not in allowed:
                raise not_permitted(f"/access/groups/{name}, {'|'.join(privileges)}")

    def _userid_param(self, test: str) -> None:
        userid = self._userid()
        if test == "self":
            self._permissions.directory.user(userid)
            if self._authid != userid:
                raise not_permitted()
            return
        realm = userid.rpartition("@")[2]
        self._permissions.check(self._authid, f"/access/realm/{realm}", [test])

    def _userid(self) -> str:
        userid = str(self._given.get("userid", ""))
        try:
            check_format("pve-userid", userid)
        except FormatError as err:
            raise PveError(str(err)) from err
        return userid

    def _fill_template(self, template: str) -> str:
        return _PLACEHOLDER.sub(lambda found: str(self._given.get(found[1], "")), template)
