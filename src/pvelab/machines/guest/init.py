"""The first process of a guest: starts programs for the lab and for `sudo`, and collects those that end.

The lab talks to it over a socket that it inherits. Programs in the guest talk to it over
`/run/lab/init.sock`: `sudo` and `su` ask for a program as another user, `reboot` and `poweroff` for an end;
it knows from the kernel who asks.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import struct
import sys
from typing import Any, Optional

from . import accounts, asking, identity, skeleton, switch
from .spawning import ProgramRequest, exit_status, spawn
from .wire import BROKER, Message, receive, send

__all__ = ["main"]


class Init:
    """The guest as a whole.

    Args:
        lab: The socket of the lab.
    """

    def __init__(self, lab: socket.socket) -> None:
        self._lab = lab
        self._running: dict[int, tuple[socket.socket, Any]] = {}
        self._waiting: dict[int, socket.socket] = {}
        self._questions = 0
        self._selector = selectors.DefaultSelector()
        self._own = {lab.fileno()}

    def serve(self) -> None:
        """Answer until the lab is gone."""
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(BROKER)
        listening.bind(BROKER)
        os.chmod(BROKER, 0o666)
        listening.listen(64)
        woken, waking = socket.socketpair()
        for sock in (woken, waking):
            sock.setblocking(False)
        signal.set_wakeup_fd(waking.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: None)
        self._own |= {listening.fileno(), woken.fileno(), waking.fileno(), self._selector.fileno()}
        self._selector.register(self._lab, selectors.EVENT_READ, "lab")
        self._selector.register(listening, selectors.EVENT_READ, "listening")
        self._selector.register(woken, selectors.EVENT_READ, "signals")
        while True:
            for key, _ in self._selector.select():
                if not self._take(key.data, key.fileobj):
                    return

    def _take(self, what: str, sock: Any) -> bool:
        """See to what came in on a socket; return False when the lab is gone."""
        if what == "lab":
            return self._from_lab()
        if what == "signals":
            self._collect(sock)
        elif what == "listening":
            client, _ = sock.accept()
            self._selector.register(client, selectors.EVENT_READ, "client")
        else:
            self._from_client(sock)
        return True

    def _collect(self, woken: socket.socket) -> None:
        with contextlib.suppress(BlockingIOError):
            woken.recv(4096)
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            found = self._running.pop(pid, None)
            if found is not None:
                sock, name = found
                self._tell(sock, {"id": name, "status": exit_status(status)})
                if sock is not self._lab:
                    self._drop(sock)

    def _from_lab(self) -> bool:
        message, descriptors = receive(self._lab)
        if message is None:
            return False
        what, name = message.get("do"), message.get("id")
        if what == "run":
            wanted = ProgramRequest.of(message)
            self._start(self._lab, name, wanted, descriptors)
        elif what == "signal":
            self._signal(self._lab, name, int(message["number"]))
        elif what == "answer":
            asker = self._waiting.pop(int(message["question"]), None)
            if asker is not None:
                self._tell(asker, {"answer": message.get("answer")})
                self._drop(asker)
        else:
            self._tell(self._lab, {"id": name, "answer": asking.answer(message)})
        for number in descriptors:
            os.close(number)
        return True

    def _from_client(self, sock: socket.socket) -> None:
        try:
            message, descriptors = receive(sock)
        except OSError:
            message, descriptors = None, []
        if message is None:
            # Anyone who asked for a program is gone: the program goes too.
            self._signal(sock, None, signal.SIGHUP)
            self._drop(sock)
            return
        try:
            self._ask(sock, message, descriptors)
        finally:
            for number in descriptors:
                os.close(number)

    def _ask(self, sock: socket.socket, message: Message, descriptors: list[int]) -> None:
        pid, seen, _ = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        uid = identity.peer_uid(pid, seen)
        what = message.get("do")
        if what == "signal":
            self._signal(sock, None, int(message["number"]))
            return
        if what == "run":
            wanted = ProgramRequest.of(message)
            refusal = asking.refusal(uid, wanted, message)
            if refusal is not None:
                self._tell(sock, {"refused": refusal})
            else:
                self._start(sock, None, wanted, descriptors)
        elif what == "lab":
            self._questions += 1
            self._waiting[self._questions] = sock
            question = {"question": self._questions, "uid": uid, "ask": message.get("ask")}
            self._tell(self._lab, question)
        else:
            self._tell(sock, {"answer": asking.answer_user(uid, message)})

    def _start(self, sock: socket.socket, name: Any, wanted: ProgramRequest, descriptors: list[int]) -> None:
        try:
            pid, terminal = spawn(wanted, descriptors, keep=self._own)
        except (OSError, LookupError, ValueError) as err:
            self._tell(sock, {"id": name, "error": str(err), "status": 126})
            return
        self._running[pid] = (sock, name)
        self._tell(sock, {"id": name, "started": pid}, () if terminal is None else (terminal,))
        if terminal is not None:
            os.close(terminal)

    def _signal(self, sock: socket.socket, name: Any, number: int) -> None:
        for pid, (owner, known) in list(self._running.items()):
            if owner is sock and known == name:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(pid, number)

    def _tell(self, sock: socket.socket, message: Message, descriptors: tuple[int, ...] = ()) -> None:
        with contextlib.suppress(OSError):
            send(sock, message, descriptors)

    def _drop(self, sock: socket.socket) -> None:
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(sock)
        sock.close()


def _start_network(facts: Message) -> Optional[int]:
    """Give the guest its interfaces; a kernel that has none to give leaves it with the loopback."""
    try:
        return switch.start(facts)
    except OSError as err:
        sys.stderr.write(f"the guest has no network: {err}\n")
        return None


def main(arguments: list[str]) -> Optional[int]:
    """Prepare the guest's files, say that it is up, and serve."""
    lab = socket.socket(fileno=int(arguments[0]))
    os.umask(0o022)
    facts, _ = receive(lab)
    if facts is None:
        return 1
    os.set_inheritable(lab.fileno(), False)
    # While it still may: what it becomes next has no say over the network.
    network = _start_network(facts)
    # Anyone who wants to know which init this is looks here.
    identity.call_itself("systemd")
    identity.become_root()
    skeleton.prepare(facts)
    init = Init(lab)
    if network is not None:
        send(lab, {"network": 1}, (network,))
        os.close(network)
    send(lab, {"up": 1, "users": len(accounts.users())})
    init.serve()
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
