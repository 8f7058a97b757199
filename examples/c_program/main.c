/* SPDX-License-Identifier: BSD-2-Clause */
/* Launch a kernel that was written in Python from C, through the CUDA driver alone, and check its result. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "fade.h"

enum { ROWS = 300, COLUMNS = 400 };

static void check(CUresult error, const char *what) {
    const char *text = NULL;
    if (error == CUDA_SUCCESS) return;
    cuGetErrorString(error, &text);
    fprintf(stderr, "%s: %s\n", what, text != NULL ? text : "unknown error");
    exit(1);
}

int main(void) {
    static float image[ROWS][COLUMNS];
    const float strength = 0.75f;
    const unsigned block[3] = {8, 32, 1};
    const unsigned grid[3] = {(ROWS + 7) / 8, (COLUMNS + 31) / 32, 1};
    CUdevice device;
    CUcontext context;
    CUdeviceptr data;
    fade_kernel fade;
    int row, column;

    for (row = 0; row < ROWS; ++row)
        for (column = 0; column < COLUMNS; ++column) image[row][column] = (float)(row + 1);

    check(cuInit(0), "cuInit");
    check(cuDeviceGet(&device, 0), "cuDeviceGet");
    check(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    check(cuMemAlloc(&data, sizeof image), "cuMemAlloc");
    check(cuMemcpyHtoD(data, image, sizeof image), "cuMemcpyHtoD");

    {
        const fade_arguments arguments = {{data, {ROWS, COLUMNS}}, strength};
        check(fade_load(&fade), "fade_load");
        check(fade_launch(&fade, grid, block, 0, NULL, &arguments), "fade_launch");
    }

    check(cuMemcpyDtoH(image, data, sizeof image), "cuMemcpyDtoH");
    check(fade_unload(&fade), "fade_unload");
    check(cuMemFree(data), "cuMemFree");
    check(cuDevicePrimaryCtxRelease(device), "cuDevicePrimaryCtxRelease");

    for (row = 0; row < ROWS; ++row) {
        for (column = 0; column < COLUMNS; ++column) {
            const double x = (double)column / COLUMNS;
            const double expected = (row + 1) * (1 - strength * x * x * (3 - 2 * x));
            if (fabs(image[row][column] - expected) > 1e-5 * (row + 1)) {
                fprintf(stderr, "row %d, column %d: %g, not %g\n", row, column, (double)image[row][column], expected);
                return 1;
            }
        }
    }
    printf("%d x %d elements are right\n", ROWS, COLUMNS);
    return 0;
}
