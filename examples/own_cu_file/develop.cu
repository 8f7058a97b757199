// One value of a photograph, exposed by STOPS and encoded for a screen. NAME distinguishes several exposures.
#include "srgb.cuh"

extern "C" __device__ float NAME(float linear) {
    return srgb(fminf(exp2f(STOPS) * linear, 1));
}
