"""ACME: `/cluster/acme`. Accounts at certificate authorities, and the plugins that answer their challenges.

The lab does not call an authority. It accepts every registration, if the client agrees to the terms of
service where there are some.
"""
