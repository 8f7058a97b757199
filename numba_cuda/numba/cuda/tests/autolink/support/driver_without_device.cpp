// A CUDA driver that finds no device: libcuda.so.1 of a machine whose GPU is not there.
#include <cstring>

extern "C" {
int cuInit(unsigned) { return 100; }  // CUDA_ERROR_NO_DEVICE

int cuDriverGetVersion(int* version) { *version = 13000; return 0; }

int cuGetErrorName(int, const char** name) { *name = "CUDA_ERROR_NO_DEVICE"; return 0; }

static int not_initialised() { return 3; }

int cuGetProcAddress_v2(const char* name, void** function, int, unsigned long, int* status) {
    if (status) *status = 0;
    *function = !strcmp(name, "cuInit") ? (void*)cuInit
        : !strcmp(name, "cuDriverGetVersion") ? (void*)cuDriverGetVersion
        : !strncmp(name, "cuGetErro", 9) ? (void*)cuGetErrorName
        : !strncmp(name, "cuGetProcAddress", 16) ? (void*)cuGetProcAddress_v2 : (void*)not_initialised;
    return 0;
}
}
