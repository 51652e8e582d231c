"""The program `stackyard`, and `python -m stackyard`: the one place that ends the process."""

from __future__ import annotations

import sys

from stackyard.cli.main import main

__all__ = ["run"]


def run() -> None:
    """Run the command line of this process and exit with its status."""
    sys.exit(main(sys.argv[1:]))


if __name__ == "__main__":
    run()
