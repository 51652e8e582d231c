"""How a run is shown: progress on standard error, the result on standard output.

`progress` prints the events as plain lines, and `live` shows them on a terminal. `output` writes the result
for a human, `machine` as one JSON object or as JSON lines. Views only consume: they never decide what
happens next.
"""
