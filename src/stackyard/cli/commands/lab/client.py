"""Calls to the control routes of a running lab, which is known by the fingerprint of its certificate."""

from __future__ import annotations

import hashlib
import http.client
import ssl
import urllib.parse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from stackyard.base.documents.jsontext import JsonError, parse_json
from stackyard.base.errors import InvalidInputError, UnreachableError
from stackyard.base.files import read_text
from stackyard.cli.commands.lab.instances import Instance

if TYPE_CHECKING:
    from stackyard.cli.commands.lab.instances import LabRecord

__all__ = ["LabClient", "LabRefusedError", "LabSilentError", "lab_client", "seed_to_send"]

_PREFIX = "/_lab"
# A reset or a snapshot of a large lab takes seconds; this only ends a call that hangs.
_TIMEOUT_S = 300.0


class LabRefusedError(InvalidInputError):
    """The lab does not do what it was asked for, and says why."""

    code = "E-LAB-REFUSED"
    summary = "The lab refuses"
    default_remedy = "Correct what was asked for; nothing was changed."


class LabSilentError(UnreachableError):
    """A lab runs under this name but does not answer, or someone else answers in its place."""

    code = "E-LAB-SILENT"
    summary = "The lab does not answer"
    default_remedy = "Stop it with `stackyard lab down` and start it again."


class LabClient:
    """Steers one lab.

    Args:
        record: The lab.
    """

    def __init__(self, record: LabRecord) -> None:
        self._record = record

    def call(self, method: str, path: str, /, **parameters: Any) -> dict[str, Any]:
        """Make a call and return its answer; parameters that are None are not sent.

        Raises:
            LabRefusedError: The lab says no.
            LabSilentError: No one answers, or not the lab that was started.
        """
        sent = {name: value for name, value in parameters.items() if value is not None}
        ready = self._record.ready
        address = urllib.parse.urlsplit(str(ready["url"]))
        target = f"{_PREFIX}{urllib.parse.quote(path)}"
        body = None
        if method in ("GET", "DELETE"):
            target += f"?{urllib.parse.urlencode(sent)}" if sent else ""
        elif sent:
            body = orjson.dumps(sent)
        # The certificate is its own; that it is the right one is checked below.
        context = ssl._create_unverified_context()  # noqa: S323 - pinned by its fingerprint instead
        connection = http.client.HTTPSConnection(
            address.hostname or "", address.port, timeout=_TIMEOUT_S, context=context
        )
        try:
            connection.connect()
            self._check_fingerprint(connection)
            connection.request(method, target, body, {"Authorization": f"PVEAPIToken={ready['api_token']}"})
            response = connection.getresponse()
            content = parse_json(response.read() or b"{}")
        except (OSError, http.client.HTTPException, JsonError) as err:
            raise LabSilentError(f"The lab at {ready['url']} does not answer: {err}.") from err
        finally:
            connection.close()
        if response.status >= 400:
            raise LabRefusedError(f"The lab says: {content.get('error') or response.reason}.")
        return dict(content)

    def _check_fingerprint(self, connection: http.client.HTTPSConnection) -> None:
        shown = connection.sock.getpeercert(True) if isinstance(connection.sock, ssl.SSLSocket) else None
        digest = hashlib.sha256(shown or b"").hexdigest().upper()
        if digest != str(self._record.ready["fingerprint"]).replace(":", "").upper():
            raise LabSilentError(f"Another server than the lab answers at {self._record.ready['url']}.")


def lab_client(name: str) -> LabClient:
    """Return a client for the lab that runs under a name.

    Raises:
        LabDownError: None does.
    """
    return LabClient(Instance(name).require())


def seed_to_send(seed: str) -> Any:
    """Return what a lab gets of a seed: its name, or what is in its file.

    Raises:
        FileError: The file cannot be read.
        SeedError: It is neither JSON nor YAML.
    """
    from pvelab.seeds import decode_seed, is_seed_file  # lazy: the lab, only when a seed is sent

    return decode_seed(read_text(Path(seed)), seed) if is_seed_file(seed) else seed
