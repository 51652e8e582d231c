"""The part of python3-apt that knows distributions, for modules which ask where packages come from."""
