"""The files of a sandbox, and how they are frozen and forked.

A private workspace starts as a plain folder of its store. A snapshot freezes that folder as a layer and puts an empty
one over it (kernel overlayfs): nothing is copied, and a layer is never written again. A fork is an empty layer over the
same stack, in a store of its own. Where the kernel has no overlay for us, or the workspace is a folder of the host
(which its owner goes on changing), files are copied, sharing blocks where the file system can; the snapshot says so.
Hard links are never used: a program that writes into a file in place would write into every fork.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import math
import os
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from palestra.errors import SandboxError
from palestra.sandboxes.base import Mount, Snapshot
from palestra.sandboxes.bwrap import View
from palestra.sandboxes.copying import copy_tree
from palestra.sandboxes.stores import Store
from palestra.sandboxes.trees import MOST_DEEP, size_mib

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
MOST_LAYERS = 400  # the kernel allows 500


class Hold:
    """Shared ownership of a store: it is closed when the last sandbox, snapshot or layer that holds it lets go."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._closer = weakref.finalize(self, store.close)


@dataclass(frozen=True)
class Layer:
    """A frozen folder: its store, its name under the keeper's base."""

    hold: Hold
    name: str


class Tree:
    """The files of one sandbox: ``path`` where programs' mounts find them, ``folder`` a descriptor of them.

    layers   the frozen stack under the workspace, topmost first; empty while it is a plain folder"""

    def __init__(self, hold: Hold, path: str, folder: int, layers: tuple[Layer, ...], own: str | None) -> None:
        self._hold, self.path, self.folder, self._layers = hold, path, folder, layers
        self.held_mib = 0.0  # of a folder of the host, before anything ran in it
        self._own = own  # the name of our topmost, still written folder; None where the workspace is the host's

    @property
    def store(self) -> Store:
        return self._hold.store

    @classmethod
    async def make(cls, mib: int, host: Path | None) -> Tree:
        hold = Hold(await Store.make(mib))
        if host is not None:
            tree = cls(hold, os.fspath(host), os.open(host, _FOLDER), (), None)
            tree.held_mib = await asyncio.to_thread(size_mib, tree.folder)
            if tree.held_mib == math.inf:
                tree.close()
                raise SandboxError(
                    f"workspace {os.fspath(host)!r} has folders nested deeper than {MOST_DEEP}, so that what it grows "
                    "by cannot be watched; name another, or write the files into a private workspace"
                )
            return tree
        return _plain(hold)

    @classmethod
    async def of(cls, snapshot: Snapshot, mib: int) -> Tree:
        """A fresh tree that starts as ``snapshot``."""
        layers = snapshot.state
        if not isinstance(layers, tuple) or not all(isinstance(layer, Layer) for layer in layers):
            raise SandboxError("this snapshot is of another back end; fork it with a sandbox of the kind that took it")
        hold = Hold(await Store.make(mib))
        with contextlib.suppress(OSError):
            return await _over(hold, layers)
        tree = _plain(hold)  # the kernel has no overlay for us, so the snapshot is one folder that was copied
        source = os.open("work", _FOLDER, dir_fd=layers[0].hold.store.folder)
        try:
            await _copy(source, tree.folder)
        finally:
            os.close(source)
        return tree

    def is_full(self) -> bool:
        """Whether no block or no inode of the store is left."""
        facts = os.fstatvfs(self.store.folder)
        return facts.f_bfree == 0 or facts.f_ffree == 0

    def view(self, mounts: tuple[Mount, ...], *, read_only: bool = False) -> View:
        path = self.store.path
        return View(self.path, f"{path}/tmp", f"{path}/shm", mounts, read_only)

    async def snapshot(self) -> Snapshot:
        if self._own is not None and len(self._layers) < MOST_LAYERS:
            frozen = (Layer(self._hold, self._own), *self._layers)
            try:
                over = await _over(self._hold, frozen)
            except OSError:
                return await self._copied()  # the kernel has no overlay for us
            os.close(self.folder)
            self.path, self.folder, self._layers, self._own = over.path, over.folder, over._layers, over._own
            return Snapshot("overlay", 0, frozen)
        return await self._copied()

    async def _copied(self) -> Snapshot:
        copy = _plain(Hold(await Store.make(self.store.mib)))
        try:
            copied, shared = await _copy(self.folder, copy.folder)
        finally:
            os.close(copy.folder)
        how: Literal["reflink", "copy"] = "reflink" if shared and not copied else "copy"
        return Snapshot(how, copied, (Layer(copy._hold, f"{copy.store.name}/work"),))

    def close(self) -> None:
        os.close(self.folder)
        if not self.store.layers:
            self.store.close()  # shared by no layer: at once


def _plain(hold: Hold) -> Tree:
    store = hold.store
    folder = os.open("work", _FOLDER, dir_fd=store.folder)
    return Tree(hold, f"{store.path}/work", folder, (), f"{store.name}/work")


async def _copy(source: int, target: int) -> tuple[int, int]:
    try:
        return await asyncio.to_thread(copy_tree, source, target)
    except OSError as error:
        mend = "; open the sandbox with a larger disk_mib" if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
        raise SandboxError(f"the workspace cannot be copied: {error.strerror}{mend}") from error


async def _over(hold: Hold, layers: tuple[Layer, ...]) -> Tree:
    upper, path, folder = await hold.store.overlay([layer.name for layer in layers])
    return Tree(hold, path, folder, layers, upper)
