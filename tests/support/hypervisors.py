"""Files of `hypervisors/` in which nothing is wrong, and a site around them."""

from __future__ import annotations

from tests.support.site import TOKEN

NODE = "api_endpoint: https://192.0.2.1:8006\ndatastore: nas\nfile_datastore: nas\napi_token: pve1\n"
SITE = {
    "site.yaml": "{defaults: {timezone: UTC}}\n",
    "secrets.yaml": f"api_tokens: {{pve1: {TOKEN}}}\npasswords: {{smb: secret-value}}\n",
    "nodes/pve1.yaml": NODE,
    "nodes/pve2.yaml": NODE,
    "postures/dev.yaml": "auth: {method: network}\n",
}
FILES = {
    "hypervisors/home.yaml": """\
api: pve1
storages:
  smb: {type: cifs, server: 192.0.2.9, share: a, username: u, password: {secret: passwords.smb}}
  nas: {type: nfs, server: 192.0.2.9, export: /tank, content: [backup, images, iso, snippets, import]}
roles: {Op: [VM.Audit]}
groups: {admins: {comment: Admins}}
users: {anna@pve: {groups: [admins]}, bob@pam: {}}
realms: {ldap: {type: ldap, base_dn: dc=example, server1: ldap.example}}
mappings: {pci: {hba: [{node: pve1, id: '1000:0097', path: '0000:01:00.0'}]}}
metrics: {influx: {type: influxdb, server: 192.0.2.8, port: 8089}}
acl:
  - {path: /, group_id: admins, role_id: PVEAdmin}
  - {path: /sdn/zones/z1/v1, token_id: anna@pve!ci, role_id: Op}
  - {path: /storage/local, user_id: bob@pam, role_id: PVEDatastoreUser}
pools: {apps: {}}
backups: {nightly: {schedule: 'mon..fri 02:30', storage: nas, pool: apps}}
sdn:
  zones: {z1: {type: simple}, z2: {type: vlan, bridge: vmbr0}}
  vnets: {v1: {zone: z1}, v2: {zone: z2, tag: 20}}
  subnets: [{vnet: v1, cidr: 10.0.0.0/24, gateway: 10.0.0.1}, {vnet: v2, cidr: 10.0.0.0/24}]
firewall:
  aliases: {gw: 192.0.2.1}
  ipsets: {lan: [192.0.2.0/24, dc/gw, {name: 192.0.2.7, nomatch: true}]}
  groups: {web: [{type: in, action: ACCEPT, proto: tcp, dport: '443'}]}
  rules:
    - {type: in, action: DROP, enabled: false}
    - {type: in, action: ACCEPT, source: '+dc/lan', macro: SSH}
    - {security_group: web}
    - {type: in, action: ACCEPT, source: '192.0.2.2-192.0.2.9'}
    - {type: in, action: ACCEPT, source: gw, macro: ssh}
    - {type: out, action: ACCEPT}
""",
    "hypervisors/pve1.yaml": """\
node: pve1
bonds: {bond0: {slaves: [eno1, eno2]}}
bridges: {vmbr0: {ports: [bond0], vlan_aware: true, address: 192.0.2.1/24, gateway: 192.0.2.254}}
vlans: {vmbr0.20: {address: 10.0.20.1/24}, vlan30: {interface: vmbr0, vlan: 30}, eno3.5: {}}
dns: {domain: lan, servers: [192.0.2.53]}
hosts: [{address: 192.0.2.1, hostnames: [pve1]}]
""",
}
