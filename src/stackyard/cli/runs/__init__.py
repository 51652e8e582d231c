"""The work of the commands on a target, without their options: loaded to run a command, not for its help.

A module of `commands` declares options and arguments; its callback imports the module here that runs it. So
`--help`, completion and a wrong usage load neither the engine nor the sources.
"""

from __future__ import annotations

import gc

# Python looks for garbage with every 700 new objects. A run that ends soon makes hardly any, and looking took
# a twentieth of the processor time of a plan.
_RARELY = 20_000

gc.set_threshold(_RARELY)
