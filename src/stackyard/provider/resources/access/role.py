"""`proxmox_virtual_environment_role`: privileges under one name."""

from __future__ import annotations

from stackyard.provider.crud import Collection
from stackyard.provider.fields import COMMA_SET, Field

__all__ = ["RESOURCE"]

RESOURCE = Collection(
    path="/access/roles",
    key="roleid",
    attribute="role_id",
    fields=(Field(attribute="privileges", key="privs", form=COMMA_SET, blank=True),),
).resource(("proxmox_virtual_environment_role",), rules={})
