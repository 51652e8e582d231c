"""A double of TrueNAS: its pools and datasets, behind the two protocols of its API.

`service` serves them over HTTPS: JSON-RPC 2.0 over a websocket at `/api/current`, as 25.04 and later have
it, and REST at `/api/v2.0`, as all before 26 have it. `rpc` and `rest` are the protocols, `calls` the methods
behind both, and `datasets` what the methods change.
"""
