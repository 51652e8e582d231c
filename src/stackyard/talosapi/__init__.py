"""What the lab's Talos machines and a client of Talos share: messages, methods, and schematics.

- `messages` has the protobuf messages of the Talos API as one table; `pb.VersionResponse` is a class.
- `methods` lists the methods of the API: path, messages, streams, and the roles that may call each.
- `schematic` computes the id of an image factory's schematic without a network; `canonical_yaml` writes the
  text that the id is the hash of.

It knows neither a server nor a client: those depend on it.
"""

from __future__ import annotations

__all__: list[str] = []
