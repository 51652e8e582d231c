"""The `http` backend protocol of OpenTofu and Terraform, in front of `StateService`.

`StateApp.handle` is a handler for `stackyard.serving`. It knows who asks (`auth`), what they may do, how the
engines understand an answer, and nothing of how states are kept. Nothing but a state that was never written
is ever answered with 404: an engine takes that for "no state yet" and would build everything anew.
"""

from __future__ import annotations

from stackyard.state.http.app import StateApp
from stackyard.state.http.auth import Authenticator
from stackyard.state.http.throttle import Throttle

__all__ = ["Authenticator", "StateApp", "Throttle"]
