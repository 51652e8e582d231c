"""Users, tokens, groups, roles, realms and the access control list."""

from __future__ import annotations

from tests.support.parity import Case

from stackyard.clients import proxmox

__all__ = ["CASES"]

TEXT = """
resource "proxmox_virtual_environment_role" "ops" {
  role_id    = "ops"
  privileges = ["VM.PowerMgmt", "VM.Audit"]
}
resource "proxmox_virtual_environment_group" "plain" { group_id = "plain" }
resource "proxmox_virtual_environment_group" "team" {
  group_id = "team"
  comment  = "the team"
  acl {
    path    = "/vms/100"
    role_id = proxmox_virtual_environment_role.ops.role_id
  }
}
resource "proxmox_virtual_environment_user" "plain" { user_id = "plain@pve" }
resource "proxmox_virtual_environment_user" "ann" {
  user_id         = "ann@pve"
  password        = "first-password"
  comment         = "from the lab"
  email           = "ann@example.com"
  first_name      = "Ann"
  last_name       = "Other"
  enabled         = false
  expiration_date = "2034-01-01T22:00:00Z"
  groups          = [proxmox_virtual_environment_group.team.group_id]
  acl {
    path      = "/vms/101"
    role_id   = proxmox_virtual_environment_role.ops.role_id
    propagate = true
  }
}
resource "proxmox_user_token" "one" {
  user_id         = proxmox_virtual_environment_user.ann.user_id
  token_name      = "one"
  comment         = "of the test"
  expiration_date = "2033-01-01T22:00:00Z"
}
resource "proxmox_virtual_environment_user_token" "two" {
  user_id               = proxmox_virtual_environment_user.ann.user_id
  token_name            = "two"
  privileges_separation = false
}
resource "proxmox_acl" "user" {
  path    = "/vms"
  user_id = proxmox_virtual_environment_user.plain.user_id
  role_id = "PVEVMUser"
}
resource "proxmox_acl" "group" {
  path      = "/storage/local"
  group_id  = proxmox_virtual_environment_group.plain.group_id
  role_id   = "PVEDatastoreUser"
  propagate = false
}
resource "proxmox_virtual_environment_acl" "token" {
  path     = "/nodes"
  token_id = proxmox_user_token.one.id
  role_id  = proxmox_virtual_environment_role.ops.role_id
}
resource "proxmox_realm_ldap" "plain" {
  realm   = "plain-ldap"
  server1 = "ldap.example.com"
  base_dn = "dc=example,dc=com"
}
resource "proxmox_virtual_environment_realm_ldap" "full" {
  realm                 = "full-ldap"
  server1               = "one.example.com"
  server2               = "two.example.com"
  base_dn               = "ou=users,dc=example,dc=com"
  bind_dn               = "cn=reader,dc=example,dc=com"
  bind_password         = "bind-password"
  user_attr             = "cn"
  port                  = 1636
  mode                  = "ldaps"
  verify                = true
  filter                = "(objectClass=person)"
  group_dn              = "ou=groups,dc=example,dc=com"
  group_filter          = "(objectClass=groupOfNames)"
  group_name_attr       = "cn"
  sync_attributes       = "email=mail,firstname=givenName"
  sync_defaults_options = "enable-new=1,scope=users"
  comment               = "a directory"
  case_sensitive        = false
}
resource "proxmox_realm_openid" "plain" {
  realm      = "plain-oidc"
  issuer_url = "https://id.example.com"
  client_id  = "lab"
}
resource "proxmox_virtual_environment_realm_openid" "full" {
  realm             = "full-oidc"
  issuer_url        = "https://id.example.com/full"
  client_id         = "full"
  client_key        = "client-secret"
  autocreate        = true
  username_claim    = "email"
  groups_claim      = "groups"
  groups_autocreate = true
  groups_overwrite  = true
  scopes            = "openid email"
  prompt            = "login"
  acr_values        = "urn:level"
  audiences         = "lab"
  query_userinfo    = false
  comment           = "an identity provider"
}
resource "proxmox_realm_openid" "hidden" {
  realm                 = "hidden-oidc"
  issuer_url            = "https://id.example.com/hidden"
  client_id             = "hidden"
  client_key_wo         = "hidden-canary"
  client_key_wo_version = 1
}
resource "proxmox_realm_sync" "once" {
  realm   = proxmox_realm_ldap.plain.realm
  scope   = "users"
  dry_run = true
}
resource "proxmox_virtual_environment_realm_sync" "again" {
  realm           = proxmox_virtual_environment_realm_ldap.full.realm
  remove_vanished = "acl;entry"
}
"""
# What the data sources say is in outputs: a plan shows any difference between the two providers.
DATA = """
data "proxmox_virtual_environment_group" "team" {
  group_id = proxmox_virtual_environment_group.team.group_id
  depends_on = [proxmox_virtual_environment_user.ann]
}
data "proxmox_virtual_environment_groups" "all" {
  depends_on = [proxmox_virtual_environment_group.plain, proxmox_virtual_environment_group.team]
}
data "proxmox_virtual_environment_role" "ops" { role_id = proxmox_virtual_environment_role.ops.role_id }
data "proxmox_virtual_environment_roles" "all" { depends_on = [proxmox_virtual_environment_role.ops] }
data "proxmox_virtual_environment_user" "ann" {
  user_id    = proxmox_virtual_environment_user.ann.user_id
  depends_on = [proxmox_virtual_environment_group.team]
}
data "proxmox_virtual_environment_users" "all" {
  depends_on = [proxmox_virtual_environment_user.ann, proxmox_virtual_environment_user.plain]
}
output "access" {
  value = [
    data.proxmox_virtual_environment_group.team, data.proxmox_virtual_environment_groups.all,
    data.proxmox_virtual_environment_role.ops, data.proxmox_virtual_environment_roles.all,
    data.proxmox_virtual_environment_user.ann, data.proxmox_virtual_environment_users.all,
  ]
}
"""

UPDATE = {
    '["VM.PowerMgmt", "VM.Audit"]': '["VM.Audit"]',
    'comment  = "the team"\n  acl {\n    path    = "/vms/100"': 'acl {\n    path    = "/vms/102"',
    'comment         = "from the lab"': "",
    'password        = "first-password"': 'password = "second-password"',
    "enabled         = false": "",
    'expiration_date = "2034-01-01T22:00:00Z"': "",
    # bpg cannot take a user out of its last group.
    "[proxmox_virtual_environment_group.team.group_id]": "[proxmox_virtual_environment_group.plain.group_id]",
    "    propagate = true": "",
    'comment         = "of the test"': 'comment = "another"',
    'expiration_date = "2033-01-01T22:00:00Z"': "",
    "privileges_separation = false": 'expiration_date = "2035-01-01T22:00:00Z"',
    'role_id = "PVEVMUser"': 'role_id = "PVEVMUser"\n  propagate = false',
    'role_id   = "PVEDatastoreUser"\n  propagate = false': 'role_id   = "PVEDatastoreUser"',
    'server2               = "two.example.com"': "",
    'bind_password         = "bind-password"': 'bind_password = "other-password"',
    "port                  = 1636": "",
    "verify                = true": "",
    'comment               = "a directory"': 'comment = "the directory"',
    "case_sensitive        = false": "",
    'client_key        = "client-secret"': "",
    'groups_claim      = "groups"': "",
    "groups_autocreate = true": "groups_autocreate = false",
    'prompt            = "login"': 'prompt = "consent"',
    "client_key_wo_version = 1": "client_key_wo_version = 2",
    "dry_run = true": 'enable_new = true\n  dry_run = true\n  remove_vanished = "none"',
}
PREFIX = "proxmox_virtual_environment_"
UPDATED = (
    f"{PREFIX}role.ops",
    f"{PREFIX}group.team",
    f"{PREFIX}user.ann",
    "proxmox_user_token.one",
    f"{PREFIX}user_token.two",
    "proxmox_acl.user",
    "proxmox_acl.group",
    f"{PREFIX}realm_ldap.full",
    f"{PREFIX}realm_openid.full",
    "proxmox_realm_openid.hidden",
    "proxmox_realm_sync.once",
)
REPLACE = {
    'role_id    = "ops"': 'role_id    = "operators"',
    'group_id = "team"': 'group_id = "crew"',
    '"ann@pve"': '"anne@pve"',
    'token_name            = "two"': 'token_name = "other"',
    'path    = "/vms"': 'path    = "/vms/200"',
    '"plain-ldap"': '"other-ldap"',
    '"plain-oidc"': '"other-oidc"',
}
REPLACED = (
    f"{PREFIX}role.ops",
    f"{PREFIX}group.team",
    f"{PREFIX}user.ann",
    f"{PREFIX}user_token.two",
    "proxmox_acl.user",
    "proxmox_realm_ldap.plain",
    "proxmox_realm_openid.plain",
    "proxmox_realm_sync.once",
)


async def _drift(api: proxmox.Client) -> None:
    await api.put("/access/roles/ops", {"privs": "VM.Audit"})
    await api.put("/access/groups/team", {"comment": "by hand"})
    await api.put("/access/users/ann@pve", {"comment": "by hand", "expire": 0, "groups": "plain"})
    await api.put("/access/users/ann@pve/token/one", {"comment": "by hand", "privsep": False})
    await api.put("/access/acl", {"path": "/vms", "users": "plain@pve", "roles": "PVEVMUser", "propagate": 0})
    await api.put("/access/domains/full-ldap", {"comment": "by hand", "delete": "server2"})
    await api.put("/access/domains/full-oidc", {"prompt": "none", "delete": "groups-claim"})


async def _remove(api: proxmox.Client) -> None:
    await api.delete("/access/roles/ops")
    await api.delete("/access/groups/team")
    await api.delete("/access/users/ann@pve")
    await api.put("/access/acl", {"path": "/vms", "users": "plain@pve", "roles": "PVEVMUser", "delete": True})
    await api.delete("/access/domains/plain-ldap")
    await api.delete("/access/domains/plain-oidc")


CASES = (
    Case(
        id="access",
        kinds=("acl", "group", "realm_ldap", "realm_openid", "realm_sync", "role", "user", "user_token"),
        sources=("group", "groups", "role", "roles", "user", "users"),
        text=TEXT + DATA,
        update=UPDATE,
        updated=UPDATED,
        replace=REPLACE,
        replaced=REPLACED,
        imports={
            f"{PREFIX}role.ops": "ops",
            f"{PREFIX}group.plain": "plain",
            f"{PREFIX}user.plain": "plain@pve",
            f"{PREFIX}user_token.two": "ann@pve!two",
            "proxmox_acl.user": "/vms?plain@pve?PVEVMUser",
            "proxmox_acl.group": "/storage/local?plain?PVEDatastoreUser",
            f"{PREFIX}acl.token": "/nodes?ann@pve!one?ops",
            "proxmox_realm_ldap.plain": "plain-ldap",
            f"{PREFIX}realm_ldap.full": "full-ldap",
            "proxmox_realm_openid.plain": "plain-oidc",
            "proxmox_realm_sync.once": "plain-ldap",
        },
        # The password of a realm, and what was synchronised, are nowhere to be read.
        unread=(f"{PREFIX}realm_ldap.full", "proxmox_realm_sync.once"),
        drift=_drift,
        drifted=(
            f"{PREFIX}role.ops",
            f"{PREFIX}group.team",
            f"{PREFIX}user.ann",
            "proxmox_user_token.one",
            "proxmox_acl.user",
            f"{PREFIX}realm_ldap.full",
            f"{PREFIX}realm_openid.full",
        ),
        remove=_remove,
        removed=(
            f"{PREFIX}role.ops",
            f"{PREFIX}group.team",
            f"{PREFIX}user.ann",
            "proxmox_acl.user",
            "proxmox_user_token.one",
            "proxmox_realm_ldap.plain",
            "proxmox_realm_openid.plain",
            "proxmox_realm_sync.once",
        ),
        hidden=("/nodes",),
        secret="hidden-canary",
        nothing={"realm_sync drift": "nothing of it is on Proxmox"},
    ),
)
