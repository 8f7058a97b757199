# SPDX-License-Identifier: BSD-2-Clause
"""The protocol: which objects a function calls, and what they answer when they are asked for their code.

An object takes part by having a method ``__numba_cuda_link__(*argtypes)``. It is called with the Numba types of a
call's arguments and returns what to link: nothing (``None``), one item, or an iterable of items. An item is a
``numba.cuda`` ``LinkableCode``, a ``cuda.core.ObjectCode`` or a path whose suffix tells its kind.

A `CallSite` is asked once, where the compiler finds it; from then on it travels with its answer, as an `AskedCall`.

====================  ==========================================================================================
``hooks``             the hooks that objects implement, as protocols for type checkers
``callee``            objects with linkable code, and which object answers for a call
``call_sites``        which objects the calls of a typed function reach
``asking``            calls an object's hooks, once per signature and target; a call site with its answer
``answers``           what an object returned, and what is remembered of it while the object lives
``stored_answers``    answers of objects with a link key, kept on disk
``errors``            the errors that users see when an object gives no usable answer, and where it raised
====================  ==========================================================================================
"""
