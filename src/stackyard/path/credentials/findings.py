"""Why tokens and passwords are not set as a file says, and what permits it."""

from __future__ import annotations

from stackyard.base.diagnostics import Kind, Severity
from stackyard.base.errors import InvalidInputError

__all__ = [
    "ACCESS_KEPT",
    "DESTROYS",
    "GRANT_UNKNOWN",
    "IN_USE",
    "LOGIN_NEEDED",
    "RENEW_TOKEN",
    "SECRET_REFUSED",
    "SECRET_UNKNOWN",
    "STORE_TAKEN",
    "USED_BY_NODES",
    "USER_UNKNOWN",
    "LoginNeededError",
]

RENEW_TOKEN = "--renew-token"  # noqa: S105 -- the name of an option

SECRET_UNKNOWN = Kind(
    code="E-TOKEN-SECRET-UNKNOWN",
    summary="A token exists, and its secret is not in the secrets of the site",
    remedy="Proxmox shows a secret only once. Put it into secrets.yaml under `api_tokens`; or replace the "
    "token with --renew-token, if nothing else uses it.",
)
SECRET_REFUSED = Kind(
    code="E-TOKEN-SECRET-REFUSED",
    summary="The cluster does not accept the secret of a token",
    remedy="Correct it in secrets.yaml; or replace the token with --renew-token, if nothing else uses it.",
)
STORE_TAKEN = Kind(
    code="E-TOKEN-STORE-TAKEN",
    summary="The secrets of the site have another token under the name of a token",
    remedy="Give the token another `store`; or take the other one out with `stackyard secrets edit`.",
)
IN_USE = Kind(
    code="E-TOKEN-IN-USE",
    summary="The token that this run uses would be removed or replaced",
    remedy="Keep it in the file. To use another one: apply both, name the new one in `api_token` of the "
    "node, and then remove the old one. To give it a new secret: --renew-token together with --login.",
)
USED_BY_NODES = Kind(
    code="E-TOKEN-USED-BY-NODES",
    summary="A token that nodes of the site use would be removed",
    remedy="Name another token in `api_token` of these nodes first.",
)
ACCESS_KEPT = Kind(
    code="W-TOKEN-KEPT",
    summary="Tokens that the site uses stay, with what gives them their rights",
    remedy="Leave them for the next apply; or remove them on a node, as the message says.",
    severity=Severity.WARNING,
)
USER_UNKNOWN = Kind(
    code="E-TOKEN-USER-UNKNOWN",
    summary="The user of a token or password does not exist",
    remedy="Add the user to `users` of the file, or correct the name.",
)
GRANT_UNKNOWN = Kind(
    code="E-TOKEN-GRANT-UNKNOWN",
    summary="A role is given to a token that does not exist",
    remedy="Add the token to `tokens` of the file, or correct `token_id`.",
)
DESTROYS = Kind(
    code="E-GUARD-DESTROYS-TOKEN",
    summary="A token would be removed, and whatever uses it is shut out",
    remedy="Keep it in the file; or name it with --allow-destroy.",
)
LOGIN_NEEDED = Kind(
    code="W-PASSWORD-LOGIN",
    summary="Proxmox lets no token set a password",
    remedy="Apply with a login, which is used once and not stored: --login root@pam.",
    severity=Severity.WARNING,
)


class LoginNeededError(InvalidInputError):
    """Passwords have to be set, which Proxmox lets no API token do; nothing was changed."""

    code = "E-PASSWORD-LOGIN"
    summary = "Passwords can be set only with a login"
    default_remedy = "Repeat the command with --login root@pam. The login is used once and not stored."
