// The transfer function of sRGB (IEC 61966-2-1), from linear light to the encoded value. Both are from 0 to 1.
#pragma once

__device__ inline float srgb(float linear) {
    return linear <= 0.0031308f ? 12.92f * linear : 1.055f * powf(linear, 1 / 2.4f) - 0.055f;
}
