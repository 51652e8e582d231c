"""The one door to the Proxmox VE API.

`Client` speaks to one cluster: it verifies the server, logs in, sends calls, tries again what cannot do harm,
shares identical reads, and waits for tasks. It knows calls and answers, not guests: what a call means is for
the packages that use it. Every failure is an error of `failures` that carries the method, the path and
what Proxmox answered; no secret is ever in one.

    async with proxmox.Client(connection) as client:
        upid = await client.post("/nodes/pve1/qemu/100/status/start")
        await proxmox.wait_for(client, upid, timeout_s=300)
"""

from __future__ import annotations

from stackyard.proxmox.client import Client
from stackyard.proxmox.connection import Connection, EndpointError, Login, Ticket, TlsVersion, Token, Trust
from stackyard.proxmox.encoding import quoted
from stackyard.proxmox.failures import (
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
from stackyard.proxmox.interfaces import (
    GuestInterface,
    GuestReportError,
    agent_interfaces,
    container_interfaces,
    read_agent_interfaces,
    read_container_interfaces,
)
from stackyard.proxmox.origin import Origin
from stackyard.proxmox.tasks import TaskEnd, list_tasks, running_task, task_log, wait_for
from stackyard.proxmox.transport import Upload

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
    "list_tasks",
    "quoted",
    "read_agent_interfaces",
    "read_container_interfaces",
    "running_task",
    "task_log",
    "wait_for",
]
