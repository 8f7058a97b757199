# SPDX-License-Identifier: BSD-2-Clause
"""Kernels that are ready to be launched, and their launches: ``kernel[grid, block, stream, shared](*args)``."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, SupportsIndex

from ..argument_names import suggest_names
from ..errors import ArgumentError, at_call, flag
from ..printable_texts import public_names
from .driver import DriverError, current_context, device_count, device_of
from .launch_config import Configuration, refused_launch
from .loaded_kernel import Code, ReadyCode, relaxed_capture
from .overload_resolution import argument_key, choose, differ_in_memory

_MOST_KEPT = 256
_State = tuple[list[Any], Any, ReadyCode]


class Overload:
    """One signature of a kernel: its parameters, and its code in the contexts that it was launched in."""

    def __init__(self, kernel: str, code: Code):
        self.kernel, self.code = kernel, code
        self._lock = threading.Lock()
        self._ready: dict[int, ReadyCode] = {}

    def ready(self, context: int) -> ReadyCode:
        """Return its code in the current context, loaded if it is not."""
        found = self._ready.get(context)
        if found is None:
            with self._lock:
                found = self._ready.get(context)
                if found is None:
                    device, parameters = device_of(context), self.code.parameters
                    found = ReadyCode(self.kernel, parameters, self.code.load(device), device)
                    self._ready[context] = found
        return found

    @property
    def owners(self) -> list[Any]:
        return [ready.owner for ready in tuple(self._ready.values())]

    def close(self) -> None:
        for ready in self._ready.values():
            ready.close()


class Launch:
    """A kernel with one signature, ready to be called with arguments."""

    def __init__(self, overload: Overload, configuration: Configuration):
        self._overload, self._configuration = overload, configuration
        self._states: dict[int, _State] = {}
        # Runs that no thread uses, the driver's configuration, and the code: of the context that was current last.
        self._state: Any = [], None, None

    def __call__(self, *args: Any, **named: Any) -> None:
        """Launch the kernel with *args*. Nothing is launched if one does not fit its parameter.

        Raises `ArgumentError` if an argument does not fit its parameter; `LaunchError` if the configuration does not
        fit the device, or the driver refuses the launch.
        """
        if named:
            raise by_position(self._overload.kernel, named)
        idle, config, ready = self._state
        try:
            run = idle.pop()
        except IndexError:
            run = None
        if run is None:
            if ready is None:
                idle, config, ready = self._adopt()[0]
            run = ready.new_run()
        try:
            run(config, args)
        except DriverError as error:
            if not error.is_of_context or not self._adopt()[1]:
                raise
            return self(*args)
        idle.append(run)

    def _adopt(self) -> tuple[_State, bool]:
        """Take up the current context, or the primary one if there is none. Return its state, and whether that changed
        anything."""
        context, was_made = current_context()
        state, before = self._states.get(context), self._state
        if state is None:
            with relaxed_capture():
                ready = self._overload.ready(context)
                config = self._configuration.for_driver(self._overload.kernel, ready)
            state = self._states[context] = ready.idle, config, ready
        self._state = state
        return state, was_made or state is not before


class _LaunchOnDevices(Launch):
    """A launch where there are several devices: each call looks at the current one."""

    def __call__(self, *args: Any, **named: Any) -> None:
        self._adopt()
        super().__call__(*args, **named)


class ChoosingLaunch:
    """A kernel with several signatures, ready to be called with arguments, which choose one of *codes* and its
    launch."""

    def __init__(
        self, kernel: str, codes: Sequence[Any], launches: Sequence[Callable[..., None]], chosen: dict[Any, int]
    ):
        self._kernel, self._codes, self._launches = kernel, codes, launches
        self._with_memory = differ_in_memory(codes)
        self._chosen = chosen

    def __call__(self, *args: Any, **named: Any) -> None:
        """Launch the kernel with *args*; see `Launch`."""
        if named:
            raise by_position(self._kernel, named)
        key = argument_key(args, self._with_memory)
        try:
            number = self._chosen.get(key)
        except TypeError:  # a dtype that cannot be hashed
            key = number = None
        if number is not None:
            try:
                return self._launches[number](*args)
            except ArgumentError:  # what the key does not tell apart
                pass
        number = choose(self._kernel, self._codes, args)
        if key is not None and len(self._chosen) < _MOST_KEPT:
            self._chosen.setdefault(key, number)
        self._launches[number](*args)


def by_position(kernel: str, named: Iterable[str]) -> ArgumentError:
    """Return the error for a launch of *kernel* with *named* arguments."""
    return ArgumentError(
        at_call(
            f"{kernel} takes its arguments by position, got {', '.join(f'{name}=' for name in named)}"
            "\n  what to do: pass them in the order of the parameters"
        )
    )


def _launch(overload: Overload, configuration: Configuration) -> Callable[..., None]:
    # Python calls a method faster than an object that has __call__.
    return (_LaunchOnDevices if device_count() > 1 else Launch)(overload, configuration).__call__


class Kernel:
    """A kernel that is ready to be launched, with one or several signatures.

    ``kernel[grid, block, stream, shared](*args)`` launches it as a kernel of Numba: grid and block are integers or
    tuples of up to three, and the stream (of any library) and the bytes of dynamic shared memory are optional.
    """

    name: str
    """Its name in Python."""

    def __init__(self, name: str, describe: Callable[[], Sequence[Code]]):
        self.name = name
        self._written = name  # what users write before the sizes of a launch
        self._describe = describe
        self._lock = threading.Lock()
        self._overloads_or_none: tuple[Overload, ...] | None = None
        self._launches: dict[Any, Callable[..., None]] = {}
        self._chosen: dict[Any, int] = {}

    @property
    def _overloads(self) -> tuple[Overload, ...]:
        with self._lock:
            if self._overloads_or_none is None:
                self._overloads_or_none = tuple(Overload(self.name, code) for code in self._describe())
            return self._overloads_or_none

    @property
    def signatures(self) -> tuple[str, ...]:
        """Its signatures, as Numba's types."""
        return tuple(overload.code.text for overload in self._overloads)

    def __dir__(self) -> list[str]:
        """Return the names for users."""
        return sorted(public_names(super().__dir__()))

    @property
    def _owners(self) -> list[Any]:
        """What keeps its code loaded, as far as it is."""
        return [owner for overload in self._overloads_or_none or () for owner in overload.owners]

    def _close(self) -> None:
        """Refuse launches of code that was loaded so far, because it is unloaded."""
        for overload in self._overloads_or_none or ():
            overload.close()

    def __getitem__(self, how: Any) -> Callable[..., None]:
        try:
            return self._launches[how]
        except (KeyError, TypeError):
            pass
        if not isinstance(how, tuple) or not 2 <= len(how) <= 4:
            raise refused_launch(self.name, f"[{how!r:.60}]", "[grid, block], [grid, block, stream] or [..., shared]")
        given: Sequence[Any] = how
        grid, block, stream, shared, *_ = (*given, 0, 0)
        defaults: dict[str, Any] = {"cooperative": False, "cluster": None, "programmatic": False}
        launch = self._configure(Configuration.of(self.name, grid, block, stream, shared, **defaults))
        # Objects are not kept, so that streams are not kept alive.
        if stream is None or isinstance(stream, int):
            if len(self._launches) >= _MOST_KEPT:
                self._launches.clear()
            with contextlib.suppress(TypeError):  # sizes may be lists
                self._launches[how] = launch
        return launch

    def __call__(self, *args: Any, **named: Any) -> None:
        """Raise `LaunchError`: a launch has a grid and a block."""
        raise refused_launch(self.name, "no grid and block", f"{self._written}[grid, block](...)")

    def __reduce__(self) -> Any:
        raise TypeError(f"kernel {self.name} cannot be pickled or copied; load its file in each process")

    @suggest_names
    def configure(
        self,
        grid: SupportsIndex | Sequence[SupportsIndex],
        block: SupportsIndex | Sequence[SupportsIndex],
        *,
        stream: Any = 0,
        shared: SupportsIndex = 0,
        cooperative: bool = False,
        cluster: SupportsIndex | Sequence[SupportsIndex] | None = None,
        programmatic: bool = False,
    ) -> Callable[..., None]:
        """Return the kernel, ready to be called with arguments.

        Parameters
        ----------
        grid, block:
            The number of blocks, and of threads in a block: an integer, or a tuple of up to three.
        stream:
            A stream of numba-cuda, cuda.core, CuPy or PyTorch, its handle, or 0 for the default stream.
        shared:
            Bytes of dynamic shared memory. More than 48 KB is asked of the driver.
        cooperative:
            Whether all blocks run at a time, for synchronization of the grid. A kernel that synchronizes its grid is
            always launched so.
        cluster:
            Blocks per cluster: an integer, or a tuple of up to three.
        programmatic:
            Whether the launch may begin before the one before it in the stream ends (programmatic dependent launch).

        Raises
        ------
        LaunchError
            If a number is not positive or exceeds the limits of CUDA, or *stream* is not a stream.
        """
        options = {
            "cooperative": flag("cooperative=", cooperative),
            "cluster": cluster,
            "programmatic": flag("programmatic=", programmatic),
        }
        return self._configure(Configuration.of(self.name, grid, block, stream, shared, **options))

    def _configure(self, how: Configuration) -> Callable[..., None]:
        return self._choose_launch([_launch(overload, how) for overload in self._overloads])

    def _choose_launch(self, launches: Sequence[Callable[..., None]]) -> Callable[..., None]:
        if len(launches) == 1:
            return launches[0]
        codes = [overload.code for overload in self._overloads]
        return ChoosingLaunch(self.name, codes, launches, self._chosen).__call__

    def __repr__(self) -> str:
        return f"<kernel {self.name}{' and '.join(self.signatures)}>"
