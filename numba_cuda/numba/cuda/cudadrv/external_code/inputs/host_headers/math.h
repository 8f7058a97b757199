// SPDX-License-Identifier: BSD-2-Clause
#pragma once
extern "C++" {
#include "cmath"
}
