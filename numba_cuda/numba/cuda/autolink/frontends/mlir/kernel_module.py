# SPDX-License-Identifier: BSD-2-Clause
"""What is changed in the MLIR of a kernel with external code: the alignment of its arrays, and names.

- Its arrays get the alignment that C++ relies on. MLIR aligns complex numbers like their parts: ``complex64`` to 4
  bytes, where ``float2`` needs 8.
- Names that are numbered in the order of compilation, as types of records are, or contain an address, are numbered
  within the kernel. So the same kernel is the same code, and its link is found in the cache.
"""

from __future__ import annotations

import re
from typing import Any

from numba_cuda_mlir._mlir import ir

_NUMBERED = re.compile(r"(?:static_shared_memory|static_shared_records|constant_array|__constant_array)_\d+")
_WITH_ADDRESS = re.compile(r"(?<=_)\d{9,}(?!\d)")
_RECORD = re.compile(r"(?<=6RecordILi)\d+(?=E)")
_LARGEST = 16  # bytes, of the alignment of a type of C++


def prepare(module: Any, gpu_module: Any) -> None:
    """Change the *module* of a kernel, and the *gpu_module* in it, in place."""
    module.operation.walk(_align)
    _number_names(gpu_module)


def _align(operation: Any) -> Any:
    if operation.name in ("memref.alloca", "memref.global"):
        attributes = operation.attributes
        memref = attributes["type"].value if operation.name == "memref.global" else operation.results[0].type
        needed = _alignment(ir.MemRefType(memref).element_type)
        known = attributes["alignment"].value if "alignment" in attributes else 0
        if needed > known:
            attributes["alignment"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), needed)
    return ir.WalkResult.ADVANCE


def _alignment(element: Any) -> int:
    """Return the alignment in bytes of an array with elements of an MLIR type, or 0 where MLIR's is right."""
    if isinstance(element, ir.ComplexType):
        return 8 if isinstance(element.element_type, ir.F32Type) else _LARGEST
    # Records are bytes in MLIR.
    return _LARGEST if element == ir.IntegerType.get_signless(8) else 0


def _number_names(gpu_module: Any) -> None:
    names: dict[str, str] = {}
    records: dict[str, str] = {}
    for operation in gpu_module.regions[0].blocks[0].operations:
        attributes = operation.operation.attributes
        name = attributes["sym_name"].value if "sym_name" in attributes else ""
        if _NUMBERED.fullmatch(name):
            names[name] = f"{name.rpartition('_')[0]}_in_kernel_{len(names)}"
            continue
        if operation.operation.name not in ("func.func", "gpu.func") or not len(operation.regions[0].blocks):
            continue
        with_records = _RECORD.sub(lambda code: records.setdefault(code[0], str(len(records))), name)
        if (numbered := _WITH_ADDRESS.sub("id", with_records)) != with_records:
            numbered = f"{numbered}_in_kernel_{len(names)}"
        if numbered != name:
            names[name] = numbered
    for name, numbered in names.items():
        ir.SymbolTable.replace_all_symbol_uses(name, numbered, gpu_module.operation)
    for operation in gpu_module.regions[0].blocks[0].operations:
        attributes = operation.operation.attributes
        if "sym_name" in attributes and (name := attributes["sym_name"].value) in names:
            ir.SymbolTable.set_symbol_name(operation.operation, names[name])
