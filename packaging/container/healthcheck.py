"""Ask the service in this container whether it is well: exit 0 if it answers 200, else 1."""

from __future__ import annotations

import ssl
import sys
import urllib.error
import urllib.request


def main(url: str) -> int:
    """Ask; the certificate of our own service, on our own loopback, is not verified."""
    try:
        context = ssl._create_unverified_context()  # noqa: S323
        with urllib.request.urlopen(url, timeout=4, context=context) as answer:  # noqa: S310
            return 0 if answer.status == 200 else 1
    except (OSError, urllib.error.URLError):
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
