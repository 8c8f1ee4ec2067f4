"""The pool: bounded, ready, one lease a sandbox, nothing left."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess

import pytest

from palestra.errors import SandboxError
from palestra.sandboxes import Limits, layers
from palestra.sandboxes.local import groups
from palestra.sandboxes.pool import SandboxPool


async def test_a_lease_is_fresh_every_time() -> None:
    async with SandboxPool(2) as pool:
        for _ in range(4):
            async with pool.lease() as box:
                assert await box.list() == () and (await box.exec(["ls", "-A", "/tmp"])).stdout == b""
                await box.exec(["sh", "-c", "touch f /tmp/g; setsid sleep 60 &"])
        await pool.settle()
        facts = pool.metrics()
    assert (facts.leased, facts.in_use, facts.ready, facts.leaks) == (4, 0, 2, 0)


async def test_the_bound_holds_and_waiters_are_served() -> None:
    seen = []
    async with SandboxPool(2) as pool:

        async def one() -> None:
            async with pool.lease() as box:
                seen.append(pool.metrics().in_use)
                await box.exec(["sleep", "0.02"])

        await asyncio.gather(*(one() for _ in range(10)))
        assert max(seen) == 2 and pool.metrics().leased == 10


async def test_waiting_has_an_end() -> None:
    async with SandboxPool(1) as pool, pool.lease():
        with pytest.raises(SandboxError, match=r"no sandbox came free in 0\.1 s: all 1 are leased"):
            async with pool.lease(timeout_s=0.1):
                pass
        assert pool.metrics().waiting == 0


async def test_a_lease_that_lasts_too_long_is_ended() -> None:
    async with SandboxPool(1, lease_s=0.2) as pool:
        async with pool.lease() as box:
            result = await box.exec(["sleep", "30"])
            assert result.exit_code == -9
            with pytest.raises(SandboxError, match="closed"):
                await box.exec(["true"])
        await pool.settle()
        assert pool.metrics().expired == 1
        async with pool.lease() as box:
            assert (await box.exec(["true"])).exit_code == 0


async def test_a_sandbox_that_died_waiting_is_not_leased() -> None:
    async with SandboxPool(2) as pool:
        parked = pool._free[0]._parked
        assert parked is not None
        os.kill(parked.pid, signal.SIGKILL)
        await asyncio.wait([parked.exited])
        async with pool.lease() as box:
            assert (await box.exec(["echo", "ok"])).stdout == b"ok\n"
        assert pool.metrics().unhealthy == 1


async def test_an_error_in_a_lease_gives_it_back() -> None:
    async with SandboxPool(1) as pool:
        with pytest.raises(ValueError, match="mine"):
            async with pool.lease():
                raise ValueError("mine")
        assert pool.metrics().in_use == 0


async def test_closing_ends_leases() -> None:
    pool = SandboxPool(2, limits=Limits(wall_s=30))
    async with pool:
        task = asyncio.ensure_future(_hold(pool))
        await asyncio.sleep(0.1)
    assert (await asyncio.wait_for(task, 5)) == -9
    with pytest.raises(SandboxError, match="pool is closed"):
        async with pool.lease():
            pass


async def _hold(pool: SandboxPool) -> int:
    async with pool.lease() as box:
        return (await box.exec(["sleep", "30"])).exit_code


async def test_what_is_left_behind_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[layers.Tree] = []
    async with SandboxPool(1) as pool:
        with monkeypatch.context() as broken:
            broken.setattr(layers.Tree, "close", lambda tree: kept.append(tree))
            async with pool.lease() as box:
                await box.exec(["true"])
            await pool.settle()
        assert await box.remains() == ("folder",) and pool.metrics().leaks == 1
        kept.pop().close()
        assert await box.remains() == ()
        async with pool.lease() as box:
            await box.exec(["true"])
        await pool.settle()
        assert pool.metrics().leaks == 1


async def test_a_process_that_is_left_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    if groups() is None:
        pytest.skip("there are no control groups here that could tell")
    async with SandboxPool(1) as pool:
        async with pool.lease() as box:
            await box.exec(["true"])
            assert box._group is not None
            with subprocess.Popen(["sleep", "60"]) as stray:
                box._group.add(stray.pid)
                await box.close()
                stray.kill()
        await pool.settle()
        assert await box.remains() == ("processes",) and pool.metrics().leaks == 1


def test_a_pool_of_nothing_is_refused() -> None:
    with pytest.raises(SandboxError, match="at least 1 sandbox, got size 0"):
        SandboxPool(0)
