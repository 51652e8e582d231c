"""Who calls, and what that user or token may do.

`directory` reads users, tokens, groups, roles and ACLs; `permissions` computes the privileges of a user on
a path, with inheritance, propagation, pools and privilege separation; `checks` evaluates the permission
expression of a call; `tickets` signs and verifies tickets, CSRF tokens and passwords; `login` tells whose
request it is.

Documents, each under the collection of its name:

* `users/<userid>`: `enable expire groups[] tokens{name: {expire privsep comment}}` and the fields of the API
* `shadow/<userid>`: the hash of a password; `token_secrets/<full tokenid>`: `value`
* `groups/<groupid>`: `comment`; membership is in the users
* `roles/<roleid>`: `privs[]`, custom roles only; `realms/<realm>`: `type` and its settings
* `acl/<path>`: `users{}`, `groups{}` and `tokens{}`, each id to `{roleid: propagate}`
"""
