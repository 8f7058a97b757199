// SPDX-License-Identifier: BSD-2-Clause
#pragma once
// Device code uses none of its names, or NVRTC has them.
