"""Process 1 of a zygote's sandbox: an interpreter that has imported what it should, and forks a child per call.

It is sent into the sandbox as text and runs under any Python of version 3.8 or newer, so it uses nothing younger and
nothing of ours. It listens on descriptor 6. A call comes with four descriptors (result, stdout,
stderr, source followed by payload); the child runs the source with ``CALL`` (the payload) and ``reply(bytes)`` in its
globals. When the child has ended, everything else in the namespace is killed and reaped before the next call.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # without signal's enumerations: in a child their half a millisecond is page faults
import array
import gc
import json
import os
import resource
import signal
import socket
import struct
import sys
from typing import Any

LINK, FRAME = 6, "!QI"
WARM_UP = """
import json, struct
class Some:
    def method(self, *args, **kwargs):
        try:
            return [x for x in range(20) if x % 2], {k: f"{v}" for k, v in kwargs.items()}
        except ValueError as error:
            raise KeyError from error
def many():
    yield json.loads(json.dumps({"a": [1, 2.5, "b", None, True], "c": {}}))
    yield Some().method(1, a=(lambda x: x + 1)(2))
found, text = list(many()), struct.pack("!QI", 1, 2) + b"x" * 10
"""


def receive(link: socket.socket) -> tuple[bytes, list[int]]:
    """One packet, and the descriptors that came with it."""
    room = socket.CMSG_SPACE(4 * 4)
    data, ancillary, _, _ = link.recvmsg(1 << 16, room, socket.MSG_CMSG_CLOEXEC)
    fds = array.array("i")
    for level, kind, content in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            fds.frombytes(content[: len(content) - len(content) % fds.itemsize])
    return data, list(fds)


def hide() -> bool:
    """No other process may read or trace this one, nor reach its descriptors through /proc."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE
    except (ImportError, OSError, AttributeError):
        return False
    return True


def serve(paths: list[str], preload: list[str]) -> None:
    sys.path[:0] = paths
    for name in preload:
        __import__(name)
    link = socket.socket(fileno=LINK)
    link.set_inheritable(False)
    wake, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one signal with a handler that a child could end us by
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    hidden = hide()
    # What is run once here has its pages of the compiler and interpreter in place; a child would fault them in anew.
    exec(compile(WARM_UP, "<call>", "exec"), {"__name__": "__main__"})
    gc.collect()
    gc.freeze()  # so that collections in a child do not touch, and so copy, the pages of what was preloaded
    link.send(json.dumps({"ready": list(sys.version_info[:3]), "hidden": hidden}).encode())
    while True:
        data, fds = receive(link)
        if not data:
            return
        if data == b"kill":
            continue  # meant for a call that ended by itself in the meantime
        call = json.loads(data)
        pid = os.fork()
        if pid == 0:
            try:
                child(call, fds, link, (wake, woken))
            finally:
                os._exit(70)  # only where the child could not even be set up
        for fd in fds:
            os.close(fd)
        link.send(json.dumps(wait(link, wake, pid)).encode())


def wait(link: socket.socket, wake: int, pid: int) -> dict[str, Any]:
    """Until the child has ended, or we are told to kill it; then end all the rest."""
    import select

    killed = False
    while True:
        ready, _, _ = select.select([link.fileno(), wake], [], [])
        if link.fileno() in ready:
            link.recv(16)
            killed = True
            os.kill(-1, signal.SIGKILL)  # all but us: we are process 1
        if wake in ready:
            os.read(wake, 512)
        found, status, used = os.wait4(pid, os.WNOHANG)
        if found:
            break
    try:
        os.kill(-1, signal.SIGKILL)
    except ProcessLookupError:
        pass  # there was nobody else
    survivors = 0
    while True:
        try:
            os.waitpid(-1, 0)
            survivors += 1
        except ChildProcessError:
            break
    return {
        "status": status,
        "killed": killed,
        "survivors": survivors,
        "cpu_s": used.ru_utime + used.ru_stime,
        "rss_kib": used.ru_maxrss,
    }


def child(call: dict[str, Any], fds: list[int], link: socket.socket, pipes: tuple[int, int]) -> None:
    """Become the call: own descriptors, own limits, own session; never returns."""
    result, out, err, source = fds
    _signal.set_wakeup_fd(-1)
    _signal.signal(signal.SIGCHLD, _signal.SIG_DFL)
    _signal.signal(signal.SIGINT, _signal.default_int_handler)
    os.setsid()
    null = os.open(os.devnull, os.O_RDONLY)
    for fd, place in ((null, 0), (out, 1), (err, 2)):
        os.dup2(fd, place)
    text, payload = read(source, call["source"]), read(source, call["payload"])
    for fd in (null, out, err, source, *pipes):
        os.close(fd)
    link.close()
    for name, value in call["limits"].items():
        resource.setrlimit(getattr(resource, name), (value[0], value[1]))
    run(text, payload, result, call["nonce"])


def read(fd: int, size: int) -> bytes:
    data = os.read(fd, size)
    while len(data) < size:
        more = os.read(fd, size - len(data))
        if not more:
            break
        data += more
    return data


def run(text: bytes, payload: bytes, result: int, nonce: int) -> None:
    pack, write, length, plain = struct.pack, os.write, len, bytes  # as they are before the call may patch them

    def reply(data: bytes) -> None:
        """Send one answer: a frame of nonce, length and bytes."""
        frame = pack(FRAME, nonce, length(data)) + plain(data)
        while frame:
            frame = frame[write(result, frame) :]

    names = {"__name__": "__main__", "__builtins__": __builtins__, "CALL": payload, "reply": reply}
    try:
        exec(compile(text, "<call>", "exec"), names)
        code = 0
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException:
        import traceback

        traceback.print_exc()
        code = 1
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code & 0xFF)


serve(**json.loads(sys.argv[1]))
