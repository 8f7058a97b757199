// SPDX-License-Identifier: BSD-2-Clause
#pragma once
// NVRTC has what device code uses of it.
