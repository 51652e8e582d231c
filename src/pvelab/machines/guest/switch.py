"""The network of a guest: interfaces with its addresses, and behind them the lab.

Each interface is one end of a pair; the other end is in a namespace of its own, with a process that takes
connections to all addresses that the lab says are there, and hands them to the lab together with the address
that was wanted. An address that is not there answers nothing, as on a real network. The same process takes
connections to the guest's own services (port 22, and the API of a nested node) and makes connections to what
listens in the guest.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import selectors
import signal
import socket
from typing import Any

from .netlink import Netlink
from .wire import Message, receive, send

__all__ = ["start"]

_NEW_NETWORK = 0x40000000
_BACKLOG = 128
_ANYWHERE = "0.0.0.0"  # noqa: S104 - inside the guest, whose network is its own


def start(facts: Message) -> int:
    """Set up the guest's network; return the descriptor of the socket that the lab gets.

    Raises:
        OSError: The kernel does not let us.
    """
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    asked, asking = os.pipe()
    told, telling = os.pipe()
    with contextlib.closing(Netlink()) as kernel:
        kernel.bring_up("lo")
    pid = os.fork()
    if pid == 0:
        near.close()
        os.close(asking)
        os.close(told)
        _run_switch(facts, far, asked, telling)
    far.close()
    os.close(asked)
    os.close(telling)
    try:
        ready = os.read(told, 1)
        if not ready:
            raise OSError(errno.EPERM, "no network namespace for the other end")
        _connect(facts, pid)
        os.write(asking, b"1")
    finally:
        os.close(asking)
        os.close(told)
    return near.detach()


def _connect(facts: Message, pid: int) -> None:
    """Make the guest's interfaces, with their other ends at the switch."""
    with contextlib.closing(Netlink()) as kernel:
        for number, card in enumerate(_cards(facts)):
            kernel.add_pair(card["name"], card["mac"], f"port{number}", pid)
            kernel.bring_up(card["name"])
            for one in _addresses(card):
                kernel.add_address(card["name"], one["address"], int(one["prefix"]))
        for gateway in facts.get("gateways", ()):
            # One that is in no network of the interface is refused, as it would be on a real one.
            with contextlib.suppress(OSError):
                kernel.add_route(_ANYWHERE, 0, str(gateway["interface"]), str(gateway["via"]))


def _run_switch(facts: Message, lab: socket.socket, asked: int, telling: int) -> None:
    """Run the other end, until the lab is gone."""
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        own = [_listen(int(port)) for port in facts.get("own_ports", ())]
        if ctypes.CDLL(None, use_errno=True).unshare(_NEW_NETWORK):
            os._exit(1)
        kernel = Netlink()
        kernel.bring_up("lo")
        os.write(telling, b"1")
        os.close(telling)
        if os.read(asked, 1):
            _plug_in(facts, kernel)
            # The number that the sandbox was set up with is root of the machine: not from here on.
            os.setresgid(0, 0, 0)
            os.setresuid(0, 0, 0)
            _Switch(lab, kernel, own, [_listen(int(port)) for port in facts.get("ports", ())]).serve()
    except OSError as err:
        with contextlib.suppress(OSError):
            send(lab, {"broken": str(err)})
    finally:
        os._exit(0)


def _plug_in(facts: Message, kernel: Netlink) -> None:
    for number, card in enumerate(_cards(facts)):
        kernel.bring_up(f"port{number}")
        for one in _addresses(card):
            kernel.add_route(one["address"], 32, f"port{number}")


def _cards(facts: Message) -> list[dict[str, Any]]:
    return [card for card in facts.get("interfaces", ()) if card["name"] != "lo"]


def _addresses(card: dict[str, Any]) -> list[dict[str, Any]]:
    return [one for one in card["addresses"] if one["family"] == "inet"]


def _listen(port: int) -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind((_ANYWHERE, port))
    sock.listen(_BACKLOG)
    sock.setblocking(False)
    return sock


class _Switch:
    """Hands connections over.

    Args:
        lab: The socket of the lab.
        kernel: Changes the routes of the switch.
        own: Listens on the guest's own addresses.
        others: Listens on all others.
    """

    def __init__(
        self, lab: socket.socket, kernel: Netlink, own: list[socket.socket], others: list[socket.socket]
    ) -> None:
        self._lab = lab
        self._kernel = kernel
        self._selector = selectors.DefaultSelector()
        self._selector.register(lab, selectors.EVENT_READ, "lab")
        for sock in (*own, *others):
            self._selector.register(sock, selectors.EVENT_READ, "listening")

    def serve(self) -> None:
        """Hand over until the lab is gone."""
        while True:
            for key, _ in self._selector.select():
                sock = key.fileobj
                if not isinstance(sock, socket.socket):
                    continue
                if key.data == "listening":
                    self._accept(sock)
                elif key.data == "lab":
                    if not self._obey():
                        return
                else:
                    self._forward_dial(sock, key.data)

    def _accept(self, listening: socket.socket) -> None:
        with contextlib.suppress(OSError):
            sock, source = listening.accept()
            with sock:
                wanted = sock.getsockname()
                send(self._lab, {"to": list(wanted[:2]), "from": list(source[:2])}, (sock.fileno(),))

    def _obey(self) -> bool:
        message, descriptors = receive(self._lab)
        for number in descriptors:
            os.close(number)
        if message is None:
            return False
        for address in message.get("add", ()):
            with contextlib.suppress(OSError):
                self._kernel.own(str(address))
        for address in message.get("remove", ()):
            with contextlib.suppress(OSError):
                self._kernel.disown(str(address))
        if "dial" in message:
            self._dial(message)
        return True

    def _dial(self, message: Message) -> None:
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        sock.setblocking(False)
        if message.get("as"):
            # An address that is not ours any more is no reason to fail.
            with contextlib.suppress(OSError):
                sock.bind((str(message["as"]), 0))
        number = sock.connect_ex((str(message["host"]), int(message["port"])))
        if number in (0, errno.EINPROGRESS):
            self._selector.register(sock, selectors.EVENT_WRITE, ("dialed", message["dial"]))
            return
        send(self._lab, {"dialed": message["dial"], "error": number})
        sock.close()

    def _forward_dial(self, sock: socket.socket, data: tuple[str, Any]) -> None:
        self._selector.unregister(sock)
        number = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        with sock:
            if number:
                send(self._lab, {"dialed": data[1], "error": number})
            else:
                send(self._lab, {"dialed": data[1]}, (sock.fileno(),))
