"""ACME: `/cluster/acme`. Accounts at certificate authorities, and the plugins that answer their challenges.

The lab does not call an authority: it takes every registration as granted, as long as the terms of service
are agreed to where there are some.
"""
