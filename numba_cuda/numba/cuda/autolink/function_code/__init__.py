# SPDX-License-Identifier: BSD-2-Clause
"""What a compiled function links: call sites with their answers, symbols, canonical LLVM IR, the record."""
