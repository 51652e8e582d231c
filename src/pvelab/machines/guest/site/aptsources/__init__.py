"""The part of python3-apt about distributions, for modules that ask where packages come from."""
