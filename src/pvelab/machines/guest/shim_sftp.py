"""`lab-sftp`: the server for files over SSH, protocol 3, as the user that it runs as."""

from __future__ import annotations

import contextlib
import os
import stat
import struct
import sys
import time
from typing import Any, Callable

__all__ = ["run"]

_OK, _EOF, _NO_SUCH_FILE, _PERMISSION, _FAILURE, _BAD, _UNSUPPORTED = 0, 1, 2, 3, 4, 5, 8
_STATUS, _HANDLE, _DATA, _NAME, _ATTRS = 101, 102, 103, 104, 105
_MOST_BYTES = 256 * 1024 + 1024
_NAMES_AT_ONCE = 100


class _Problem(Exception):
    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class _Reader:
    """Takes a request apart."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def number(self, form: str = ">I") -> int:
        size = struct.calcsize(form)
        found: int = struct.unpack_from(form, self.data, self.at)[0]
        self.at += size
        return found

    def text(self) -> bytes:
        size = self.number()
        found = self.data[self.at : self.at + size]
        self.at += size
        return found

    def attributes(self) -> dict[str, Any]:
        flags = self.number()
        found: dict[str, Any] = {}
        if flags & 1:
            found["size"] = self.number(">Q")
        if flags & 2:
            found["owner"] = (self.number(), self.number())
        if flags & 4:
            found["mode"] = self.number()
        if flags & 8:
            found["times"] = (self.number(), self.number())
        return found


class _Server:
    def __init__(self) -> None:
        self._handles: dict[bytes, Any] = {}
        self._count = 0
        self._actions: dict[int, Callable[[_Reader], tuple[int, bytes]]] = {
            3: self._open,
            4: self._close,
            5: self._read,
            6: self._write,
            7: lambda request: _attrs(os.lstat(request.text())),
            8: lambda request: _attrs(os.fstat(self._file(request.text()))),
            9: self._setstat,
            10: self._fsetstat,
            11: self._opendir,
            12: self._readdir,
            13: self._unlink,
            14: self._mkdir,
            15: self._rmdir,
            16: lambda request: _names([(os.path.realpath(request.text() or b"."), None)]),
            17: lambda request: _attrs(os.stat(request.text())),
            18: self._rename,
            19: lambda request: _names([(os.readlink(request.text()), None)]),
            20: self._symlink,
            200: self._answer_extended,
        }

    def serve(self) -> int:
        """Answer until the client is gone."""
        stdin, stdout = sys.stdin.buffer, sys.stdout.buffer
        while True:
            head = stdin.read(4)
            if len(head) < 4:
                return 0
            size = struct.unpack(">I", head)[0]
            if not 0 < size <= _MOST_BYTES:
                return 1
            data = stdin.read(size)
            if len(data) < size:
                return 0
            answer = self._answer(data[0], _Reader(data[1:]))
            stdout.write(struct.pack(">I", len(answer)) + answer)
            stdout.flush()

    def _answer(self, kind: int, request: _Reader) -> bytes:
        if kind == 1:
            return b"\x02" + struct.pack(">I", 3) + _text(b"posix-rename@openssh.com") + _text(b"1")
        number = request.number()
        try:
            action = self._actions.get(kind)
            if action is None:
                raise _Problem(_UNSUPPORTED, "Operation unsupported")
            code, body = action(request)
        except _Problem as err:
            code, body = _STATUS, _status(err.code, str(err))
        except OSError as err:
            code, body = _STATUS, _status(_code(err), err.strerror or "Failure")
        except struct.error:
            code, body = _STATUS, _status(_BAD, "Bad message")
        return bytes([code]) + struct.pack(">I", number) + body

    def _keep(self, what: Any) -> tuple[int, bytes]:
        self._count += 1
        name = str(self._count).encode()
        self._handles[name] = what
        return _HANDLE, _text(name)

    def _file(self, name: bytes) -> int:
        found = self._handles.get(name)
        if not isinstance(found, int):
            raise _Problem(_FAILURE, "Failure")
        return found

    def _open(self, request: _Reader) -> tuple[int, bytes]:
        path, wish, attributes = request.text(), request.number(), request.attributes()
        flags = os.O_RDWR if wish & 3 == 3 else os.O_WRONLY if wish & 2 else os.O_RDONLY
        for bit, flag in ((4, os.O_APPEND), (8, os.O_CREAT), (16, os.O_TRUNC), (32, os.O_EXCL)):
            flags |= flag if wish & bit else 0
        return self._keep(os.open(path, flags, stat.S_IMODE(attributes.get("mode", 0o666))))

    def _close(self, request: _Reader) -> tuple[int, bytes]:
        found = self._handles.pop(request.text(), None)
        if found is None:
            raise _Problem(_FAILURE, "Failure")
        if isinstance(found, int):
            os.close(found)
        return _report_success()

    def _read(self, request: _Reader) -> tuple[int, bytes]:
        handle, offset, size = self._file(request.text()), request.number(">Q"), request.number()
        data = os.pread(handle, min(size, _MOST_BYTES - 1024), offset)
        if not data:
            raise _Problem(_EOF, "End of file")
        return _DATA, _text(data)

    def _write(self, request: _Reader) -> tuple[int, bytes]:
        handle, offset, data = self._file(request.text()), request.number(">Q"), request.text()
        while data:
            written = os.pwrite(handle, data, offset)
            data, offset = data[written:], offset + written
        return _report_success()

    def _setstat(self, request: _Reader) -> tuple[int, bytes]:
        return _change(request.text(), request.attributes())

    def _fsetstat(self, request: _Reader) -> tuple[int, bytes]:
        return _change(self._file(request.text()), request.attributes())

    def _opendir(self, request: _Reader) -> tuple[int, bytes]:
        path = request.text()
        return self._keep([(name, os.path.join(path, name)) for name in (b".", b"..", *os.listdir(path))])

    def _readdir(self, request: _Reader) -> tuple[int, bytes]:
        found = self._handles.get(request.text())
        if not isinstance(found, list):
            raise _Problem(_FAILURE, "Failure")
        if not found:
            raise _Problem(_EOF, "End of file")
        chosen, found[:] = found[:_NAMES_AT_ONCE], found[_NAMES_AT_ONCE:]
        rows = []
        for name, path in chosen:
            with contextlib.suppress(OSError):
                rows.append((name, os.lstat(path)))
        return _names(rows)

    def _unlink(self, request: _Reader) -> tuple[int, bytes]:
        os.unlink(request.text())
        return _report_success()

    def _rmdir(self, request: _Reader) -> tuple[int, bytes]:
        os.rmdir(request.text())
        return _report_success()

    def _mkdir(self, request: _Reader) -> tuple[int, bytes]:
        path, attributes = request.text(), request.attributes()
        os.mkdir(path, stat.S_IMODE(attributes.get("mode", 0o777)))
        return _report_success()

    def _rename(self, request: _Reader) -> tuple[int, bytes]:
        source, target = request.text(), request.text()
        if os.path.lexists(target):
            raise _Problem(_FAILURE, "Failure")
        os.rename(source, target)
        return _report_success()

    def _symlink(self, request: _Reader) -> tuple[int, bytes]:
        # OpenSSH has the two the other way round than the draft, and all clients follow it.
        target, link = request.text(), request.text()
        os.symlink(target, link)
        return _report_success()

    def _answer_extended(self, request: _Reader) -> tuple[int, bytes]:
        if request.text() != b"posix-rename@openssh.com":
            raise _Problem(_UNSUPPORTED, "Operation unsupported")
        os.replace(request.text(), request.text())
        return _report_success()


def _change(what: Any, attributes: dict[str, Any]) -> tuple[int, bytes]:
    if "size" in attributes:
        os.truncate(what, attributes["size"])
    if "owner" in attributes:
        os.chown(what, *attributes["owner"])
    if "mode" in attributes:
        os.chmod(what, stat.S_IMODE(attributes["mode"]))
    if "times" in attributes:
        os.utime(what, attributes["times"])
    return _report_success()


def _report_success() -> tuple[int, bytes]:
    return _STATUS, _status(_OK, "Success")


def _attrs(found: os.stat_result) -> tuple[int, bytes]:
    return _ATTRS, _pack_attributes(found)


def _pack_attributes(found: os.stat_result) -> bytes:
    return struct.pack(
        ">IQIIIII",
        15,
        found.st_size,
        found.st_uid,
        found.st_gid,
        found.st_mode,
        int(found.st_atime) & 0xFFFFFFFF,
        int(found.st_mtime) & 0xFFFFFFFF,
    )


def _names(rows: list[Any]) -> tuple[int, bytes]:
    parts = [struct.pack(">I", len(rows))]
    for name, found in rows:
        if found is None:
            parts += [_text(name), _text(name), struct.pack(">I", 0)]
        else:
            when = time.strftime("%b %d %H:%M", time.localtime(found.st_mtime))
            who = f"{found.st_uid:<8} {found.st_gid:<8} {found.st_size:>8}"
            line = f"{stat.filemode(found.st_mode)} {found.st_nlink:>3} {who} {when} ".encode() + name
            parts += [_text(name), _text(line), _pack_attributes(found)]
    return _NAME, b"".join(parts)


def _text(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


def _status(code: int, text: str) -> bytes:
    return struct.pack(">I", code) + _text(text.encode()) + _text(b"en")


def _code(err: OSError) -> int:
    if isinstance(err, (FileNotFoundError, NotADirectoryError)):
        return _NO_SUCH_FILE
    return _PERMISSION if isinstance(err, PermissionError) else _FAILURE


def run(_name: str, _words: list[str]) -> int:
    """Serve files."""
    return _Server().serve()
