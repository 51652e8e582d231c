"""The `http` backend protocol of OpenTofu and Terraform, in front of `StateService`.

`StateApp.handle` is a handler for `stackyard.base.serving`. It authenticates the client (`auth`), checks
its rights, and answers in the form that engines know. It does not know how states are stored. Only a
state that was never written is answered with 404: an engine reads 404 as "no state yet" and would create
everything again.
"""

from __future__ import annotations

from stackyard.state.http.app import StateApp
from stackyard.state.http.auth import Authenticator
from stackyard.state.http.throttle import Throttle

__all__ = ["Authenticator", "StateApp", "Throttle"]
