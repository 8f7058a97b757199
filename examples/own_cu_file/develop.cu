// One value of a photograph, exposed by a number of stops and encoded for a screen.
#include "srgb.cuh"

__device__ float develop(float linear, int stops) {
    return srgb(fminf(exp2f(stops) * linear, 1));
}
