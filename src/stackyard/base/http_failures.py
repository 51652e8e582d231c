"""What went wrong with an HTTP request, in words: one function for every client.

The texts of aiohttp name Python objects (`ssl:<ssl.SSLContext object at ...>`), Python tuples, and whole
addresses with whatever a query or a user part of them holds.
"""

from __future__ import annotations

import os
import re
import socket
import ssl

import aiohttp

__all__ = ["describe_failure", "describe_system"]

# What asyncio writes in the place of the system's own words.
_CONNECT_CALL = re.compile(r"Connect call failed \((.*)\)", re.DOTALL)


def describe_failure(err: BaseException) -> str:
    """Say why a request failed, without a full stop: `cannot connect to pve1:8006: Connection refused`."""
    if isinstance(err, aiohttp.ClientConnectorCertificateError):
        return f"the certificate of {err.host}:{err.port} cannot be verified: {_certificate(err)}"
    if isinstance(err, aiohttp.ServerFingerprintMismatch):
        got = err.got.hex(":").upper()
        return f"the certificate of {err.host}:{err.port} has the fingerprint {got}, not the one given"
    if isinstance(err, aiohttp.ClientConnectorError):
        return f"cannot connect to {err.host}:{err.port}: {describe_system(err.os_error)}"
    if isinstance(err, aiohttp.InvalidURL):
        return "an address is not valid"
    if isinstance(err, aiohttp.ClientResponseError):
        return f"the answer was {err.status} {err.message}".strip()
    if isinstance(err, aiohttp.ConnectionTimeoutError):
        return "the connection timed out"
    if isinstance(err, TimeoutError):
        return "no answer came in time"
    if isinstance(err, OSError):
        return describe_system(err)
    return str(err) or type(err).__name__


def describe_system(err: OSError) -> str:
    """Say in the system's words why a connection failed: `Connection refused`."""
    if isinstance(err, ssl.SSLError):
        reason = err.reason or ""
        return f"TLS failed: {reason.lower().replace('_', ' ')}" if reason else "TLS failed"
    if isinstance(err, socket.gaierror):
        return err.strerror or str(err)
    if err.errno is not None and err.errno > 0:
        return os.strerror(err.errno)
    return _CONNECT_CALL.sub("connection failed", str(err)) or type(err).__name__


def _certificate(err: aiohttp.ClientConnectorCertificateError) -> str:
    found = err.certificate_error
    return str(getattr(found, "verify_message", "") or found)
