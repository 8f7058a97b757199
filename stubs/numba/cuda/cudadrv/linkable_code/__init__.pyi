# SPDX-License-Identifier: BSD-2-Clause
from collections.abc import Callable
from typing import Any

class LinkableCode:
    def __init__(
        self,
        data: Any,
        name: str | None = None,
        setup_callback: Callable[[Any], object] | None = None,
        teardown_callback: Callable[[Any], object] | None = None,
        nrt: bool = False,
    ) -> None: ...
    @property
    def name(self) -> str:
        """The name of the code in messages of compilers and linkers."""

    @property
    def data(self) -> Any:
        """The code: text or bytes."""

class LTOIR(LinkableCode): ...
class PTXSource(LinkableCode): ...
class CUSource(LinkableCode): ...
class Cubin(LinkableCode): ...
class Fatbin(LinkableCode): ...
class Object(LinkableCode): ...
class Archive(LinkableCode): ...

def __getattr__(name: str) -> Any: ...
