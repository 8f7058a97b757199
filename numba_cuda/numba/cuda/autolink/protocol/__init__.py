# SPDX-License-Identifier: BSD-2-Clause
"""The protocol: which objects a function calls, and what they answer when they are asked for their code.

`linkables.hooks` describes how an object takes part. A `CallSite` is asked once, where the compiler finds it; from then
on it travels with its answer, as an `AskedCall`.
"""
