"""`proxmox_virtual_environment_time`: the time zone of a node."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

from stackyard.provider.resources.node_settings.whole import WholeSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.provider.values import Object

__all__ = ["RESOURCE", "TIME"]


def _values(found: Mapping[str, Any]) -> Object:
    # The node says how far its zone is from UTC, so this machine needs no table of zones.
    offset = datetime.timedelta(seconds=int(found["localtime"]) - int(found["time"]))
    moment = datetime.datetime.fromtimestamp(int(found["time"]), datetime.UTC)
    return {
        "local_time": _rfc3339(moment.astimezone(datetime.timezone(offset))),
        "time_zone": found["timezone"],
        "utc_time": _rfc3339(moment),
    }


def _rfc3339(moment: datetime.datetime) -> str:
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


TIME = WholeSettings(name="time", params=lambda state: {"timezone": state["time_zone"]}, values=_values)
RESOURCE = TIME.resource(rules={})
