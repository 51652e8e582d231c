"""Logging in to AWS with a token that the forge gives a job, in place of a secret."""

from __future__ import annotations

import re
from dataclasses import dataclass

from stackyard.base.errors import UsageError
from stackyard.clients.forge.model import ForgeKind

__all__ = ["AwsRoles", "read_roles"]

# Nothing of it has a meaning in YAML, in a shell or in an expression.
_ROLE = re.compile(r"arn:aws[a-z-]*:iam::[0-9]{12}:role/[A-Za-z0-9_+=./-]{1,500}")
_FORM = "aws=ROLE_ARN[,apply=ROLE_ARN]"


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsRoles:
    """The roles of AWS that jobs take.

    Attributes:
        plan: That of all jobs but the apply.
        apply: That of the apply.
    """

    plan: str
    apply: str

    def __post_init__(self) -> None:
        for role in (self.plan, self.apply):
            if not _ROLE.fullmatch(role):
                raise UsageError(
                    f"{role!r} is not the ARN of a role.",
                    remedy="Such as arn:aws:iam::123456789012:role/stackyard-plan.",
                )


def read_roles(text: str, kind: ForgeKind) -> AwsRoles:
    """Return the roles that `--oidc` names.

    Args:
        text: `aws=ROLE_ARN`, and behind a comma `apply=ROLE_ARN` where applies have a role of their own.
        kind: The forge.

    Raises:
        UsageError: It is not of that form, or the forge gives jobs no such token.
    """
    if kind is ForgeKind.GITEA:
        raise UsageError(
            "Gitea 1.26 gives jobs no OIDC token: --oidc works on GitHub and GitLab.",
            remedy="Leave --oidc out, and set secrets, or use a runner on a machine that has a role.",
        )
    given = dict(one.partition("=")[::2] for one in text.split(","))
    if "aws" not in given or set(given) - {"aws", "apply"} or len(given) != text.count(",") + 1:
        raise UsageError(f"--oidc {text} is not of the form {_FORM}.")
    return AwsRoles(plan=given["aws"], apply=given.get("apply", given["aws"]))
