# SPDX-License-Identifier: BSD-2-Clause
"""The protocol: which objects a function calls, and what they answer when they are asked for their code.

`linkables.hooks` describes how an object takes part. A `CallSite` is asked once, where the compiler finds it; from then
on it travels with its answer, as an `AskedCall`.

=====================  =====================================================================================
``callee``             objects with linkable code, and which object answers for a call
``loaded_modules``     what identifies the code of modules: versions, records, the content of files
``value_digest``       digests of Python values, equal in each process in which the value is the same
``call_sites``         which objects the calls of a typed function reach
``ask``                calls an object's hooks, once per signature and target; a call site with its answer
``answers``            what an object returned, and what is remembered of it while the object lives
``stored_answers``     answers of objects with a link key, kept on disk
``errors``             the errors that users see when an object gives no usable answer, and where it raised
``closures``           functions that are written in a kernel, with what they take from around them
``typing_diagnosis``   why Numba cannot type a use of called objects, in place of its own message
``kernel_signatures``  signatures of kernels, and what is wrong with them
=====================  =====================================================================================
"""
