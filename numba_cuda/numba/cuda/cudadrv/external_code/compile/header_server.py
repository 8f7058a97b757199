# SPDX-License-Identifier: BSD-2-Clause
"""Servers that have precompiled the headers with which translation units begin.

NVRTC spends nearly all of its time on headers. A server is a child process that has precompiled those of one prefix, as
``header_prefix`` finds it, for one set of options, and compiles units that begin with it. It is started when the first
such unit has been compiled. It is ready when it has compiled that unit too, to the same bytes.

NVRTC does not notice that a precompiled header has changed, so a server is found by the digests of all its headers.
Whatever is in doubt is compiled plainly: what does not compile, what NVRTC has warnings about, and what is asked of a
busy server.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import shutil
import sys
import tempfile
import threading
import warnings
import weakref
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ..cache.settings import CacheWarning
from ..cache.store import CacheStore, current_store
from ..child_process import ChildError, ChildProcess
from . import header_server_child
from .cached_unit import MANY_HEADERS, CachedUnit
from .header_prefix import prefixed
from .nvrtc import Compiled
from .translation_unit import TranslationUnit, compile_unit

_MOST_SERVERS = 2
_HEAP = 768 << 20  # bytes that NVRTC may use for the headers of one server; with its default, CUB's do not fit
_LIMIT = 300.0  # seconds for one request
# With these, code contains places in the source, or headers are read before the prefix.
_REFUSED = ("debug", "lineinfo", "pre_include")


def compile_with_server(unit: TranslationUnit, names: Sequence[str] = ()) -> Compiled:
    """Compile *unit*, and lower the name expressions *names*: by a server if one is ready, else in this process. In the
    cache's verify mode, do both and compare. Raises `CompileError` if it does not compile."""
    split = _split(unit) if sys.platform == "linux" else None
    digest = None if split is None else _digest(split.prefix)
    if split is None or digest is None:
        return compile_unit(unit, names)
    with _servers_lock:
        server = _servers.pop(digest, None)
        if server is not None:
            _servers[digest] = server  # as the one used last
    made = None if server is None else server.compiled(split.unit, names)
    if made is not None and _digest(split.prefix, look_again=True) != digest:  # a header was edited
        made = None
    if made is not None and not current_store().settings.verify:
        return made
    plain = compile_unit(unit, names)
    if server is None:
        _start(_Server(split, digest, names, plain))
    elif made is not None and not _is_same(made, plain):
        message = f"{unit.name}: a compile server makes other code. Unset NUMBA_CUDA_AUTOLINK_COMPILE_SERVER"
        warnings.warn(f"{message}, and please report this.", CacheWarning, stacklevel=2)
    return plain


def wait_for_servers() -> None:
    """Wait until each server that was started is ready, or has failed."""
    for server in list(_servers.values()):
        server.preparation.join()


def ready_servers() -> int:
    """Return how many servers are ready."""
    return sum(server.is_ready for server in list(_servers.values()))


def close_servers() -> None:
    """End all servers."""
    while _servers:
        with contextlib.suppress(KeyError):  # another thread has taken it
            _servers.popitem()[1].close()


@dataclass(frozen=True)
class _Split:
    """The prefix of a translation unit, and the unit as it begins with that prefix."""

    prefix: CachedUnit
    unit: TranslationUnit


def _split(unit: TranslationUnit) -> _Split | None:
    """Return a unit's prefix; None if it has none that can be precompiled."""
    if os.path.isfile(unit.name) or any(unit.option(option) for option in _REFUSED):
        return None
    if (parts := prefixed(unit.code)) is None:
        return None
    try:
        prefix = _unit(weakref.ref(current_store()), replace(unit, code=parts.prefix, name="headers.cu"))
    except TypeError:  # an option may be any object, which has no hash
        return None
    return _Split(prefix, replace(unit, code=parts.text))


@functools.lru_cache(32)
def _unit(store: weakref.ref[CacheStore], prefix: TranslationUnit) -> CachedUnit:
    return CachedUnit(prefix)


def _digest(prefix: CachedUnit, *, look_again: bool = False) -> bytes | None:
    """Return a digest of the options and of all headers that a prefix reads; None if they are small or not known, or
    where one has just been edited, for which *look_again* looks at each."""
    try:
        known = prefix.known()
    except OSError:
        return None
    if known is None or known.manifest.size < MANY_HEADERS or (look_again and known.manifest.refreshed() is None):
        return None
    return prefix.base_key.digest + known.key.digest


def _is_same(one: Compiled, other: Compiled) -> bool:
    return (one.code, one.names, one.log) == (other.code, other.names, other.log)


class _Server:
    """A child process for the units that begin with one prefix, whose headers have one content. The first of them was
    compiled to *plain*."""

    def __init__(self, first: _Split, digest: bytes, names: Sequence[str], plain: Compiled) -> None:
        self.digest = digest
        self._lock = threading.Lock()
        self._child: ChildProcess | None = None
        self.is_ready = False
        prepare = functools.partial(self._prepare, first, names, plain)
        self.preparation = threading.Thread(target=prepare, name="precompiling headers", daemon=True)

    @property
    def is_busy(self) -> bool:
        return self.preparation.is_alive() or self._lock.locked()

    def close(self) -> None:
        self.is_ready = False
        if self._child is not None:
            self._child.close()

    def compiled(self, unit: TranslationUnit, names: Sequence[str]) -> Compiled | None:
        """Return *unit*, which begins with the prefix, compiled; None if the server is busy or cannot."""
        if not self.is_ready or not self._lock.acquire(blocking=False):
            return None
        try:
            return self._requested(unit, names)
        finally:
            self._lock.release()

    def _requested(self, unit: TranslationUnit, names: Sequence[str]) -> Compiled | None:
        assert self._child is not None
        asked = asdict(unit) | {"options": dict(unit.options), "names": list(names)}
        try:
            reply = self._child.request({"compile": asked}, timeout=_LIMIT)
        except ChildError:
            self.close()
            return None
        return Compiled(reply.blobs[0], "", (), reply.content["names"]) if reply.blobs else None

    def _prepare(self, first: _Split, names: Sequence[str], plain: Compiled) -> None:
        """Have a child precompile the headers, and compare what it makes of the first unit."""
        prefix = first.prefix.unit
        folder = tempfile.mkdtemp(prefix="numba-cuda-autolink-")
        asked = {"code": prefix.code, "name": prefix.name, "options": dict(prefix.options)}
        try:
            self._child = ChildProcess(header_server_child.__file__)
            reply = self._child.request({"precompile": asked | {"folder": folder, "heap": _HEAP}}, timeout=_LIMIT)
            made = self._requested(first.unit, names) if reply.content["is_ready"] else None
            is_same = made is not None and _is_same(made, plain)
            self.is_ready = is_same and _digest(first.prefix, look_again=True) == self.digest
        except (ChildError, TypeError):  # an option may be any object, which cannot be sent
            pass
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            if not self.is_ready:
                self.close()


_servers: dict[bytes, _Server] = {}  # by their digests; the least recently used is first
_servers_lock = threading.Lock()
_of_parent: tuple[Any, ...] = ()


def _start(server: _Server) -> None:
    """Start a server in place of one that does nothing, or, if all others are at work, not at all."""
    with _servers_lock:
        if server.digest in _servers:
            return
        if len(_servers) >= _MOST_SERVERS:
            idle = next((digest for digest, other in _servers.items() if not other.is_busy), None)
            if idle is None:
                return
            _servers.pop(idle).close()
        _servers[server.digest] = server
        server.preparation.start()


def _forget() -> None:
    """Leave the servers to the process that this one was forked from."""
    global _servers, _servers_lock, _of_parent
    _of_parent = _servers, _of_parent  # what is unwritten in a pipe must not be written by this process too
    _servers, _servers_lock = {}, threading.Lock()
    _unit.cache_clear()


atexit.register(close_servers)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
