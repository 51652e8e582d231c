"""The only client of the Proxmox VE API.

`Client` calls one cluster. It verifies the server, logs in, sends calls, retries calls that are safe to
repeat, shares identical reads, and waits for tasks. It knows calls and answers, not guests: the packages
that use it know what a call means. Every failure is an error of `failures` with the method, the path and
the answer of Proxmox, and never a secret.

    async with proxmox.Client(connection) as client:
        upid = await client.post("/nodes/pve1/qemu/100/status/start")
        await proxmox.wait_for(client, upid, timeout_s=300)
"""

from __future__ import annotations

from stackyard.clients.proxmox.client import Client
from stackyard.clients.proxmox.connection import (
    Connection,
    EndpointError,
    Login,
    Ticket,
    TlsVersion,
    Token,
    Trust,
)
from stackyard.clients.proxmox.encoding import quote
from stackyard.clients.proxmox.failures import (
    AnswerLostError,
    AnswerUnusableError,
    LoginRefusedError,
    MissingError,
    ProxmoxError,
    ProxmoxUnreachableError,
    RefusedError,
    TaskFailedError,
    TaskTimeoutError,
    UntrustedServerError,
)
from stackyard.clients.proxmox.interfaces import (
    GuestInterface,
    GuestReportError,
    agent_interfaces,
    container_interfaces,
    read_agent_interfaces,
    read_container_interfaces,
)
from stackyard.clients.proxmox.origin import Origin
from stackyard.clients.proxmox.tasks import TaskEnd, find_running_task, list_tasks, task_log, wait_for
from stackyard.clients.proxmox.transport import Upload

__all__ = [
    "AnswerLostError",
    "AnswerUnusableError",
    "Client",
    "Connection",
    "EndpointError",
    "GuestInterface",
    "GuestReportError",
    "Login",
    "LoginRefusedError",
    "MissingError",
    "Origin",
    "ProxmoxError",
    "ProxmoxUnreachableError",
    "RefusedError",
    "TaskEnd",
    "TaskFailedError",
    "TaskTimeoutError",
    "Ticket",
    "TlsVersion",
    "Token",
    "Trust",
    "UntrustedServerError",
    "Upload",
    "agent_interfaces",
    "container_interfaces",
    "find_running_task",
    "list_tasks",
    "quote",
    "read_agent_interfaces",
    "read_container_interfaces",
    "task_log",
    "wait_for",
]
