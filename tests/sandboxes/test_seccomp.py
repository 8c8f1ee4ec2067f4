"""The filter is run, instruction by instruction, as the kernel runs it."""

from __future__ import annotations

import errno
import socket
import struct

import pytest

from palestra.sandboxes import seccomp

ALLOW, KILL = 0x7FFF0000, 0x80000000
MACHINES = sorted(seccomp.ARCHES)


def verdict(machine: str, number: int, *args: int, arch: int | None = None, deny_ipc: bool = False) -> int:
    """What the filter answers to ``seccomp_data``: number, arch, instruction pointer, six 64-bit arguments."""
    arch = seccomp.ARCHES[machine][1] if arch is None else arch
    data = struct.pack("=IIQ6Q", number, arch, 0, *args, *[0] * (6 - len(args)))
    code = seccomp.program(machine, deny_ipc=deny_ipc)
    steps = [struct.unpack_from("=HBBI", code, at) for at in range(0, len(code), 8)]
    place = accumulator = 0
    while True:
        kind, yes, no, k = steps[place]
        place += 1
        if kind == 0x20:
            (accumulator,) = struct.unpack_from("=I", data, k)
        elif kind == 0x54:
            accumulator &= k
        elif kind == 0x06:
            return k
        else:
            holds = {0x15: accumulator == k, 0x35: accumulator >= k, 0x45: bool(accumulator & k)}[kind]
            place += yes if holds else no


def column(machine: str) -> int:
    return seccomp.ARCHES[machine][0]


@pytest.mark.parametrize("machine", MACHINES)
def test_every_listed_call_is_answered_as_listed(machine: str) -> None:
    for table, number in ((seccomp.DENIED, errno.EPERM), (seccomp.ABSENT, errno.ENOSYS)):
        for name, numbers in table.items():
            call = numbers[column(machine)]
            if call is not None:
                assert verdict(machine, call) == 0x50000 | number, name


@pytest.mark.parametrize("machine", MACHINES)
def test_all_other_calls_are_allowed(machine: str) -> None:
    listed = {numbers[column(machine)] for table in (seccomp.DENIED, seccomp.ABSENT) for numbers in table.values()}
    special = {pair[column(machine)] for pair in (seccomp.CLONE, seccomp.SOCKET, seccomp.IOCTL)}
    for call in set(range(470)) - listed - special:
        assert verdict(machine, call) == ALLOW, call


@pytest.mark.parametrize("machine", MACHINES)
def test_clone_makes_threads_and_processes_but_no_namespaces(machine: str) -> None:
    call = seccomp.CLONE[column(machine)]
    assert verdict(machine, call, 17) == ALLOW  # SIGCHLD: fork
    assert verdict(machine, call, 0x3D0F00) == ALLOW  # the flags of pthread_create
    for flag in (0x80, 0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):
        assert verdict(machine, call, 17 | flag) == 0x50000 | errno.EPERM, hex(flag)


@pytest.mark.parametrize("machine", MACHINES)
def test_sockets_are_local_internet_or_routing_and_never_raw(machine: str) -> None:
    call, cloexec = seccomp.SOCKET[column(machine)], 0x80000
    for family in (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6):
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_STREAM | cloexec | 0x800):
            assert verdict(machine, call, family, kind) == ALLOW
        assert verdict(machine, call, family, socket.SOCK_RAW | cloexec) == 0x50000 | errno.EPERM
    assert verdict(machine, call, socket.AF_NETLINK, socket.SOCK_RAW) == ALLOW
    for family in (17, 38, 40, 31):  # packet, kernel crypto, vsock, bluetooth
        assert verdict(machine, call, family, socket.SOCK_STREAM) == 0x50000 | errno.EAFNOSUPPORT


@pytest.mark.parametrize("machine", MACHINES)
def test_terminals_cannot_be_typed_into(machine: str) -> None:
    call = seccomp.IOCTL[column(machine)]
    assert verdict(machine, call, 0, 0x5412) == verdict(machine, call, 0, 0x541C) == 0x50000 | errno.EPERM
    assert verdict(machine, call, 0, 0x5413) == ALLOW  # the size of a window


@pytest.mark.parametrize("machine", MACHINES)
def test_a_foreign_instruction_set_is_killed(machine: str) -> None:
    assert verdict(machine, 1, arch=0x40000003) == KILL


def test_the_second_numbering_of_x86_is_absent() -> None:
    assert verdict("x86_64", 0x40000000 | 101) == 0x50000 | errno.ENOSYS


@pytest.mark.parametrize("machine", MACHINES)
def test_lasting_ipc_is_denied_only_on_request(machine: str) -> None:
    for numbers in seccomp.PERSISTENT_IPC.values():
        call = numbers[column(machine)]
        assert call is not None
        assert verdict(machine, call) == ALLOW
        assert verdict(machine, call, deny_ipc=True) == 0x50000 | errno.EPERM


def test_an_unknown_machine_is_said_to_be_unsupported() -> None:
    assert not seccomp.supported("riscv64") and seccomp.supported("aarch64")
