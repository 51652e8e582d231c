"""Who may call methods: whoever has the key, unless there were too many attempts."""

from __future__ import annotations

import errno
import hashlib
import hmac
from typing import TYPE_CHECKING, Any

from pvelab.truenas.problems import CallError

if TYPE_CHECKING:
    from pvelab.world.clock import LabClock

__all__ = ["USER", "Logins", "make_api_key"]

USER = "truenas_admin"
# TrueNAS allows this many attempts, or calls without a login, and then refuses all for a while.
_MOST = 20
_WITHIN_S = 60.0
_PENALTY_S = 600.0


def make_api_key(api_token: str) -> str:
    """Return the API key of TrueNAS in a lab: it lasts as long as the token of the lab."""
    return f"1-{hashlib.sha256(f'truenas:{api_token}'.encode()).hexdigest()}"


class Logins:
    """Checks keys, and counts attempts.

    Args:
        key: The one key that is good.
        clock: The time of the lab.
    """

    def __init__(self, key: str, clock: LabClock) -> None:
        self._key = key
        self._clock = clock
        self._attempts: list[float] = []
        self._refused_until = 0.0

    def check(self, given: str) -> bool:
        """Return whether a key is good.

        Raises:
            CallError: There were too many attempts.
        """
        self.count()
        return self.is_good(given)

    def check_user(self, request: Any) -> dict[str, Any]:
        """Answer `auth.login_ex`: the key has to be that of the user, whose name is `USER`.

        Raises:
            CallError: There were too many attempts.
        """
        self.count()
        given = request if isinstance(request, dict) else {}
        is_good = given.get("mechanism") == "API_KEY_PLAIN" and given.get("username") == USER
        if not is_good or not self.is_good(str(given.get("api_key", ""))):
            return {"response_type": "AUTH_ERR"}
        return {"response_type": "SUCCESS", "user_info": {"pw_name": USER}, "authenticator": "LEVEL_1"}

    def is_good(self, given: str) -> bool:
        """Return whether a key is good, without counting: REST sends it with every request."""
        return hmac.compare_digest(given.encode(), self._key.encode())

    def count(self) -> None:
        """Count an attempt.

        Raises:
            CallError: There were too many.
        """
        now = self._clock.now()
        if now < self._refused_until:
            raise CallError("Rate Limit Exceeded", errno.EBUSY)
        self._attempts = [at for at in self._attempts if at > now - _WITHIN_S]
        self._attempts.append(now)
        if len(self._attempts) > _MOST:
            self._refused_until = now + _PENALTY_S
            raise CallError("Rate Limit Exceeded", errno.EBUSY)
