"""Isolation: what a command cannot see, reach or become."""

from __future__ import annotations

import os
import tempfile

from palestra.sandboxes.conformance.runner import Trial, case


@case("isolation")
async def host_files_are_absent(t: Trial) -> None:
    """A file of the host is not there, by its name or through another process, and no home folder of the host is."""
    with tempfile.NamedTemporaryFile(prefix="palestra-secret-") as secret:
        os.chmod(secret.name, 0o644)
        secret.write(b"secret")
        secret.flush()
        result = await t.sh(f"cat {secret.name} /proc/1/root{secret.name} /proc/1/cwd{secret.name} {__file__}")
        t.equal(result.stdout, b"")
        theirs = (await t.sh("ls -A /home")).stdout.decode().split()
    t.true(not {*theirs} & {*os.listdir("/home")}, f"homes of the host that are seen: {theirs}")


@case("isolation")
async def no_descriptor_of_ours_is_open(t: Trial) -> None:
    """A command, and the process 1 that it can see, hold pipes and devices: no socket, and no file of the host."""
    listed = (await t.sh("ls -l /proc/self/fd /proc/1/fd 2>/dev/null")).stdout.decode()
    held = [line.partition("-> ")[2] for line in listed.splitlines() if "-> " in line]
    t.true(len(held) >= 3, f"too few descriptors to judge: {listed}")
    odd = [name for name in held if not name.startswith(("pipe:", "/dev/", "/proc/"))]
    t.true(not odd, f"descriptors that a command should not have: {odd}")


@case("isolation")
async def the_root_is_read_only(t: Trial) -> None:
    """Nothing can be written but the workspace, /tmp and the sandbox's own /dev."""
    script = "for d in / /usr /usr/bin /etc /bin /lib /proc /home; do touch $d/x 2>/dev/null && echo $d; done; true"
    t.equal((await t.sh(script)).stdout, b"")


@case("isolation")
async def tmp_is_private(t: Trial) -> None:
    """What is written to /tmp is not on the host's."""
    await t.sh("touch /tmp/palestra-conformance-mark")
    t.true(not os.path.exists("/tmp/palestra-conformance-mark"), "the file is on the host")


@case("isolation")
async def host_processes_are_unseen(t: Trial) -> None:
    """We are not among the processes that a command sees."""
    with open("/proc/self/cmdline", "rb") as ours:
        t.true(ours.read() not in (await t.sh("cat /proc/[0-9]*/cmdline")).stdout, "our own process is seen")


@case("isolation")
async def host_processes_cannot_be_signalled(t: Trial) -> None:
    """Our own process id names nothing inside."""
    t.true((await t.sh(f"kill -0 {os.getpid()}")).exit_code != 0, "our process can be signalled")


@case("isolation")
async def kill_everything_hits_nothing_of_ours(t: Trial) -> None:
    """``kill -9 -1`` ends at most the command."""
    await t.sh("kill -9 -1")
    t.equal((await t.sh("echo alive")).stdout, b"alive\n")


@case("isolation")
async def there_is_no_network(t: Trial) -> None:
    """There is no interface but an empty loopback."""
    t.equal((await t.sh("tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '")).stdout, b"lo\n")
    t.equal((await t.sh("cat /proc/net/route | tail -n +2")).stdout, b"")


@case("isolation")
async def there_are_no_capabilities(t: Trial) -> None:
    """Every capability set is empty."""
    result = await t.sh("grep -h ^Cap /proc/self/status | cut -f2 | sort -u")
    t.equal(result.stdout, b"0000000000000000\n")


@case("isolation")
async def privileges_cannot_grow(t: Trial) -> None:
    """no_new_privs is set."""
    t.equal((await t.sh("grep NoNewPrivs /proc/self/status | cut -f2")).stdout, b"1\n")


@case("isolation")
async def a_filter_is_active(t: Trial) -> None:
    """A system-call filter is loaded."""
    t.equal((await t.sh("grep ^Seccomp: /proc/self/status | cut -f2")).stdout, b"2\n")


@case("isolation")
async def mounting_is_denied(t: Trial) -> None:
    """No file system can be mounted or unmounted."""
    t.true((await t.sh("mount -t tmpfs none /tmp")).exit_code != 0, "mount worked")
    t.true((await t.sh("umount /tmp")).exit_code != 0, "umount worked")


@case("isolation")
async def namespaces_are_denied(t: Trial) -> None:
    """No user namespace can be made inside."""
    t.true((await t.sh("unshare -U true")).exit_code != 0, "unshare -U worked")
    t.true((await t.sh("unshare -Ur true")).exit_code != 0, "unshare -Ur worked")


@case("isolation")
async def devices_are_few(t: Trial) -> None:
    """No disk, memory or kernel-log device is there, and none can be made."""
    t.equal((await t.sh("ls /dev | grep -E '^(sd|vd|nvme|mem|kmem|kmsg|port|loop|fuse|kvm)'")).stdout, b"")
    t.true((await t.sh("mknod d b 8 0 || mknod d c 1 1")).exit_code != 0, "mknod made a device")


@case("isolation")
async def the_kernel_cannot_be_tuned(t: Trial) -> None:
    """Nothing under /proc/sys can be written."""
    # Each is written with what it holds already: where the sandbox fails, the host is still as it was.
    script = (
        "cd /proc/sys/kernel; for f in panic core_pattern hostname; do v=$(cat $f) && echo $v > $f && echo $f; done"
    )
    t.equal((await t.sh(script)).stdout, b"", "kernel settings that were written")
    t.true((await t.sh("test -w /proc/sysrq-trigger && ! test -c /proc/sysrq-trigger")).exit_code != 0, "sysrq is open")


@case("isolation")
async def the_host_name_is_hidden(t: Trial) -> None:
    """The host's name is not seen, and cannot be set."""
    t.true(
        (await t.box.exec(["uname", "-n"])).stdout.decode().strip() != os.uname().nodename, "the host's name is seen"
    )
    t.true((await t.sh("hostname evil")).exit_code != 0, "the name was set")


@case("isolation")
async def only_standard_descriptors_are_open(t: Trial) -> None:
    """A command gets descriptors 0, 1 and 2 alone."""
    t.equal((await t.sh("ls -1 /proc/$$/fd; true")).stdout, b"0\n1\n2\n")


@case("isolation")
async def preloading_stays_inside(t: Trial) -> None:
    """LD_PRELOAD and its like reach the command alone."""
    result = await t.sh("echo ran", env={"LD_PRELOAD": "/workspace/evil.so", "LD_LIBRARY_PATH": "/workspace"})
    t.equal(result.stdout, b"ran\n")
    t.true(b"evil.so" in result.stderr, "the variable did not reach the command")


@case("isolation", "kills-all")
async def nothing_outlives_a_command(t: Trial) -> None:
    """What a command leaves behind (setsid, nohup, a double fork) is dead when exec returns."""
    await t.sh("(setsid sh -c 'sleep 0.4; touch /workspace/late' &) ; nohup sh -c 'sleep 0.4; touch late2' >&- 2>&- &")
    await t.sh("sleep 0.6")
    t.equal(await t.box.list(), ())


@case("isolation")
async def sandboxes_do_not_meet(t: Trial) -> None:
    """Another sandbox of the same kind sees nothing of this one."""
    await t.sh("echo secret > f; echo secret > /tmp/f")
    from palestra.sandboxes import open_sandbox

    async with open_sandbox("local") as other:
        result = await other.exec(["sh", "-c", "cat /workspace/f /tmp/f /dev/shm/f; ls -A /workspace; ls -A /tmp"])
    t.equal(result.stdout, b"")
