"""What the verbs of `stackyard state` share: choosing the store, who acts, and how things are shown.

`store_options` adds the options, `open_service` gives the states that they choose. Nothing here decides
anything about states; that is `stackyard.state`.
"""

from __future__ import annotations
