"""`/_lab/clock`: the time of the lab, and how long work takes in it."""

from __future__ import annotations

from typing import Any

from pvelab.faults.latency import Speed, Work, parse_latency
from pvelab.server.control import ControlCall, control
from pvelab.server.problems import PveError
from stackyard.base.errors import UsageError

__all__ = ["change_clock", "read_clock"]

_FIELDS = frozenset(("advance", "held", "speed", "latency"))


@control("GET /clock")
def read_clock(call: ControlCall) -> Any:
    """Tell the time, whether it stands still, and the seconds that each kind of work takes."""
    clock, latency = call.world.clock, call.world.latency
    return {
        "time": clock.now(),
        "ahead": round(clock.offset_s, 3),
        "held": clock.is_held,
        "waiting": clock.sleepers,
        "speed": latency.speed.value,
        "latency": {work.value: latency.seconds(work) for work in Work},
    }


@control("POST /clock")
def change_clock(call: ControlCall) -> Any:
    """Let time pass (`advance`: seconds), stop or release it (`held`), change `speed` and `latency`."""
    params, clock, latency = call.params, call.world.clock, call.world.latency
    unknown = sorted(set(params) - _FIELDS)
    if unknown or not params:
        raise PveError(
            f"tell the clock one of {', '.join(sorted(_FIELDS))}, not {', '.join(unknown)}", status=400
        )
    try:
        seconds = float(params.get("advance", 0))
        speed = Speed(params.get("speed", latency.speed))
        overrides = parse_latency(str(params["latency"])) if "latency" in params else latency.overrides_s
    except (TypeError, ValueError) as err:
        raise PveError(f"the clock does not understand: {err}", status=400) from err
    except UsageError as err:
        raise PveError(err.detail, status=400) from err
    if seconds < 0:
        raise PveError("time does not go back", status=400)
    if "held" in params:
        held = str(params["held"]).lower() in ("1", "true")
        clock.hold() if held else clock.release()
    latency.speed, latency.overrides_s = speed, overrides
    clock.advance(seconds)
    return read_clock.handler(call)
