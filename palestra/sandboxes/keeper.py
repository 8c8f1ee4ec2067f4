"""The keeper: one small process beside ours that holds the mounts of all sandboxes and starts their bubblewraps.

It runs as ``python -I -S keeper.py FD PREFIX`` in a user and a mount namespace of its own, so that workspaces can be
size-limited file systems and overlays without privilege on the host, and so that the kernel removes every mount when it
ends. It is spoken to over Unix sockets: the one of the command line carries new connections, one per store; a store
lives as long as its connection, so that a process that is killed leaves nothing. It imports the standard library alone.

Requests, one JSON packet each, answered in order:
    {"op": "store", "mib", "inodes"}            a tmpfs with work/ tmp/ shm/  -> {"path"} and a descriptor of it
    {"op": "overlay", "upper", "lowers"}        folders relative to the base  -> {"path"} and a descriptor of the view
    {"op": "spawn", "argv"} and descriptors     become 0, 1, 2, 3 … of the new process -> {"pid"}
and, unasked, {"exit": pid, "status", "cpu_s", "rss_kib"} when a process that was spawned has ended.
"""

import array
import contextlib
import ctypes
import json
import os
import select
import signal
import socket
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000
MS_NOSUID, MS_NODEV, MS_REC, MS_SLAVE, MNT_DETACH = 2, 4, 1 << 14, 1 << 19, 2
PACKET, MOST_FDS = 1 << 16, 16
_IGNORED = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # here; not in what we start
Request = dict[str, Any]
libc = ctypes.CDLL(None, use_errno=True)


def call(name: str, *args: object) -> None:
    if getattr(libc, name)(*args) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def mount(source: str, target: str, kind: str, flags: int, data: str) -> None:
    call("mount", source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), data.encode())


def unshare() -> None:
    """New user and mount namespaces, the caller's own user shown as 0 in them."""
    uid, gid = os.getuid(), os.getgid()
    call("unshare", CLONE_NEWUSER | CLONE_NEWNS)
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    mount("none", "/", "", MS_REC | MS_SLAVE, "")


class Store:
    """One connection: its file system, and the processes that were started for it."""

    def __init__(self, base: str, number: int, link: socket.socket) -> None:
        self.base, self.name, self.link = base, str(number), link
        self.path = os.path.join(base, self.name)
        self.mounted: list[str] = []
        self.pids: set[int] = set()

    def serve(self, request: Request, fds: list[int]) -> None:
        getattr(self, "do_" + request["op"])(request, fds)

    def do_store(self, request: Request, fds: list[int]) -> None:
        os.mkdir(self.path)
        mount("tmpfs", self.path, "tmpfs", MS_NOSUID | MS_NODEV, size(request) + ",mode=0755")
        self.mounted.append(self.path)
        for name, mode in (("work", 0o755), ("tmp", 0o1777), ("shm", 0o1777)):
            os.mkdir(f"{self.path}/{name}")
            os.chmod(f"{self.path}/{name}", mode)
        self.answer_folder(self.path)

    def do_overlay(self, request: Request, fds: list[int]) -> None:
        upper = request["upper"]
        work, merged = upper + ".work", upper + ".merged"
        made = [os.path.join(self.base, name) for name in (upper, work, merged)]
        for path in made:
            os.mkdir(path)
        try:
            os.setxattr(made[0], "user.palestra", b"1")  # without it, overlay cannot hide a folder that was replaced
            os.removexattr(made[0], "user.palestra")
            lowers = ":".join(request["lowers"])
            os.chdir(self.base)  # relative names keep a hundred layers within one page of options
            mount(
                "overlay",
                made[2],
                "overlay",
                MS_NOSUID | MS_NODEV,
                f"lowerdir={lowers},upperdir={upper},workdir={work},userxattr",
            )
        except OSError:
            for path in made:
                os.rmdir(path)
            raise
        self.mounted.append(made[2])
        self.answer_folder(made[2])

    def do_spawn(self, request: Request, fds: list[int]) -> None:
        moves = [(os.POSIX_SPAWN_DUP2, fd, place) for place, fd in enumerate(fds)]
        pid = os.posix_spawn(
            request["argv"][0], request["argv"], {}, file_actions=moves, setsid=True, setsigdef=_IGNORED
        )
        self.pids.add(pid)
        self.answer({"pid": pid})

    def answer_folder(self, path: str) -> None:
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self.answer({"path": path}, [folder])
        os.close(folder)

    def answer(self, data: Request, fds: Sequence[int] = ()) -> None:
        with contextlib.suppress(BrokenPipeError):  # the store is being closed; its end of file comes next
            socket.send_fds(self.link, [json.dumps(data).encode()], fds)

    def close(self) -> None:
        """Kill, unmount, forget. What was killed is reaped by the loop."""
        for pid in self.pids:
            os.kill(pid, signal.SIGKILL)
        self.link.close()
        for path in reversed(self.mounted):
            call("umount2", path.encode(), MNT_DETACH)
        if self.mounted:
            os.rmdir(self.path)


class Keeper:
    def __init__(self, door: socket.socket) -> None:
        unshare()
        self.door = door
        self.base = tempfile.mkdtemp(prefix=sys.argv[2])
        mount("tmpfs", self.base, "tmpfs", MS_NOSUID | MS_NODEV, "size=16m,mode=0700")
        self.poll = select.poll()
        self.stores: dict[int, Store] = {}
        self.children: dict[int, tuple[int, Store]] = {}
        self.count = 0

    def run(self) -> None:
        self.poll.register(self.door, select.POLLIN)
        self.door.send(json.dumps({"base": self.base}).encode())
        try:
            while True:
                for fd, _ in self.poll.poll():
                    if fd in self.children:
                        self.reap(fd)
                    elif fd in self.stores:
                        self.hear(self.stores[fd])
                    elif not self.welcome():
                        return
        finally:
            self.close()

    def welcome(self) -> bool:
        data, fds = receive(self.door, 16, 1)
        if not data:
            return False
        self.count += 1
        store = Store(self.base, self.count, socket.socket(fileno=fds[0]))
        self.stores[fds[0]] = store
        self.poll.register(fds[0], select.POLLIN)
        return True

    def hear(self, store: Store) -> None:
        try:
            data, fds = receive(store.link, PACKET, MOST_FDS)
        except ConnectionError:  # its owner was killed with our word unread
            data, fds = b"", []
        if not data:
            fd = store.link.fileno()
            self.poll.unregister(fd)
            del self.stores[fd]
            store.close()
            return
        before = set(store.pids)
        try:
            store.serve(json.loads(data), high(fds))
        except OSError as error:
            store.answer({"errno": error.errno, "error": error.strerror or str(error)})
        finally:
            for fd in fds:
                os.close(fd)
        for pid in store.pids - before:
            watch = os.pidfd_open(pid)
            self.children[watch] = (pid, store)
            self.poll.register(watch, select.POLLIN)

    def reap(self, watch: int) -> None:
        pid, store = self.children.pop(watch)
        self.poll.unregister(watch)
        os.close(watch)
        _, status, used = os.wait4(pid, 0)
        store.pids.discard(pid)
        if store.link.fileno() >= 0:
            cpu_s = used.ru_utime + used.ru_stime
            store.answer({"exit": pid, "status": status, "cpu_s": cpu_s, "rss_kib": used.ru_maxrss})

    def close(self) -> None:
        """Called when our owner has gone: leave the host as it was."""
        for store in self.stores.values():
            store.close()
        for pid, _ in self.children.values():
            os.waitpid(pid, 0)
        os.chdir("/")
        call("umount2", self.base.encode(), MNT_DETACH)
        os.rmdir(self.base)


def receive(link: socket.socket, size: int, most: int) -> tuple[bytes, list[int]]:
    """One packet, and the descriptors that came with it, which no process that we start inherits.

    Not ``socket.recv_fds``: up to Python 3.11 it ignores its flags, and so gives away what it receives."""
    data, ancillary, _, _ = link.recvmsg(size, socket.CMSG_SPACE(4 * most), socket.MSG_CMSG_CLOEXEC)
    fds = array.array("i")
    for level, kind, content in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            fds.frombytes(content[: len(content) - len(content) % fds.itemsize])
    return data, list(fds)


def size(request: Request) -> str:
    return f"size={request['mib']}m,nr_inodes={request['inodes']}"


def high(fds: list[int]) -> list[int]:
    """Received descriptors, moved in place above those that a process gets: no dup2 may hit another's source."""
    import fcntl

    for index, fd in enumerate(fds):
        if fd < MOST_FDS:
            fds[index] = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, MOST_FDS)
            os.close(fd)
    return fds


def main() -> None:
    door = socket.socket(fileno=int(sys.argv[1]))
    door.set_inheritable(False)  # it came to us open; no sandbox may have it
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)  # it ends when its owner does, not when a terminal says so
    try:
        keeper = Keeper(door)
    except OSError as error:
        door.send(json.dumps({"errno": error.errno, "error": error.strerror or str(error)}).encode())
        return
    keeper.run()


if __name__ == "__main__":
    main()
