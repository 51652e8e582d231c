"""How a run is shown: progress on standard error, the result on standard output.

`progress` follows the event stream (live on a terminal, plain lines elsewhere), `output` writes the result
for a human, as one JSON object, or as JSON lines. Views only consume: they never decide what happens next.
"""
