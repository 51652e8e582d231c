"""Objects at a state service, over HTTPS: `open_objects("https://host:8443?fingerprint=AB:CD:...")`.

The service is `stackyard state serve`, or a controller with states (`https://host:port/state`). The token
comes from the environment, never from the address. A write carries an id of its own: if the answer to it is
lost, it is sent again with the same id, and the service does it once.
"""

from __future__ import annotations

from stackyard.clients.objects.http.address import HttpAddress
from stackyard.clients.objects.http.store import HttpObjects
from stackyard.clients.objects.http.token import TOKEN_FILE_VARIABLE, TOKEN_VARIABLE, StoreToken

__all__ = ["TOKEN_FILE_VARIABLE", "TOKEN_VARIABLE", "HttpAddress", "HttpObjects", "StoreToken"]
