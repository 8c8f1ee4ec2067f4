"""The system-call filter: a classic BPF program, assembled here, handed to bubblewrap on a descriptor.

What neither a build nor a test needs answers EPERM; what libraries probe for and can do without answers ENOSYS; a
foreign instruction set (32-bit calls on a 64-bit kernel, whose numbers mean other calls) is killed.
"""

from __future__ import annotations

import errno
import platform
import socket
import struct
from functools import cache

# name -> (x86_64, aarch64); None where the architecture has no such call.
DENIED: dict[str, tuple[int | None, int | None]] = {
    # tracing and reading other processes
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "move_pages": (279, 239),
    # mounts and namespaces
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "open_tree": (428, 428),
    "open_tree_attr": (467, 467),
    "move_mount": (429, 429),
    "mount_setattr": (442, 442),
    "unshare": (272, 97),
    "setns": (308, 268),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    # keys, programs in the kernel, performance counters
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "fanotify_init": (300, 262),
    "lookup_dcookie": (212, 18),
    # the machine itself
    "syslog": (103, 116),
    "acct": (163, 89),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "iopl": (172, None),
    "ioperm": (173, None),
    "modify_ldt": (154, None),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "nfsservctl": (180, 42),
    "vhangup": (153, 58),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "adjtimex": (159, 171),
    "clock_adjtime": (305, 266),
}
# clone3 hides its flags behind a pointer that a filter cannot follow: without it, C libraries use clone.
ABSENT: dict[str, tuple[int | None, int | None]] = {
    "clone3": (435, 435),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
}
# State of the IPC namespace that outlives a process: denied where one namespace serves many evaluations.
PERSISTENT_IPC: dict[str, tuple[int | None, int | None]] = {
    "shmget": (29, 194),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
}
CLONE, SOCKET, IOCTL = (56, 220), (41, 198), (16, 29)
NEW_NAMESPACES = 0x7E020080  # CLONE_NEW{NS,CGROUP,UTS,IPC,USER,PID,NET,TIME}
FAMILIES = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK)
SOCK_TYPES = (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET)
TIOCSTI, TIOCLINUX = 0x5412, 0x541C  # putting words into a terminal's mouth

ARCHES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_LOAD, _JEQ, _JGE, _JSET, _AND, _RET = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_NR, _ARCH, _ARGS = 0, 4, 16
EPERM, ENOSYS, EAFNOSUPPORT = (_ERRNO | number for number in (errno.EPERM, errno.ENOSYS, errno.EAFNOSUPPORT))

Step = tuple[int, int, int, int]


def supported(machine: str | None = None) -> bool:
    return (machine or platform.machine()) in ARCHES


@cache
def program(machine: str | None = None, *, deny_ipc: bool = False) -> bytes:
    """The filter for an architecture (this machine's when None), as the kernel takes it.

    Raises KeyError for an architecture that ``supported`` refuses."""
    column, arch = ARCHES[machine or platform.machine()]
    steps: list[Step] = [(_LOAD, 0, 0, _ARCH), (_JEQ, 1, 0, arch), (_RET, 0, 0, _KILL), (_LOAD, 0, 0, _NR)]
    if column == 0:  # the x32 numbering of the same calls would slip past every test below
        steps += [(_JGE, 0, 1, 0x40000000), (_RET, 0, 0, ENOSYS)]
    denied = DENIED | (PERSISTENT_IPC if deny_ipc else {})
    for table, answer in ((denied, EPERM), (ABSENT, ENOSYS)):
        for numbers in table.values():
            number = numbers[column]
            if number is not None:
                steps += [(_JEQ, 0, 1, number), (_RET, 0, 0, answer)]
    steps += _when(CLONE[column], [(_LOAD, 0, 0, _ARGS), (_JSET, 0, 1, NEW_NAMESPACES), (_RET, 0, 0, EPERM)])
    steps += _when(SOCKET[column], _sockets())
    steps += _when(IOCTL[column], [(_LOAD, 0, 0, _ARGS + 8), *_refuse(TIOCSTI), *_refuse(TIOCLINUX)])
    steps.append((_RET, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def _when(number: int, body: list[Step]) -> list[Step]:
    """``body`` for one call, ending in "allow"; others jump over it."""
    block = [*body, (_RET, 0, 0, _ALLOW)]
    return [(_JEQ, 0, len(block), number), *block]


def _refuse(value: int) -> list[Step]:
    return [(_JEQ, 0, 1, value), (_RET, 0, 0, EPERM)]


def _sockets() -> list[Step]:
    """Only local, IPv4, IPv6 and routing sockets, and none of them raw. (A vsock would reach past any namespace.)"""
    steps: list[Step] = [(_LOAD, 0, 0, _ARGS)]
    steps += [(_JEQ, len(FAMILIES) - place, 0, int(family)) for place, family in enumerate(FAMILIES)]
    steps += [(_RET, 0, 0, EAFNOSUPPORT), (_LOAD, 0, 0, _ARGS), (_JEQ, len(SOCK_TYPES) + 3, 0, int(socket.AF_NETLINK))]
    steps += [(_LOAD, 0, 0, _ARGS + 8), (_AND, 0, 0, 0xF)]  # the upper bits are SOCK_CLOEXEC and SOCK_NONBLOCK
    steps += [(_JEQ, len(SOCK_TYPES) - place, 0, int(kind)) for place, kind in enumerate(SOCK_TYPES)]
    return [*steps, (_RET, 0, 0, EPERM)]
