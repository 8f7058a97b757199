// Device functions for kernels. Every extern "C" __device__ function is callable from Python by its name: numbers go by
// value, arrays to pointers.

// 0 below lower, 1 above upper, and smooth in between.
extern "C" __device__ float smooth_step(float lower, float upper, float x) {
    const float t = fminf(fmaxf((x - lower) / (upper - lower), 0.0f), 1.0f);
    return t * t * (3.0f - 2.0f * t);
}

// The value of a polynomial, its coefficients from the highest power down.
extern "C" __device__ double polynomial(const double* coefficients, int count, double x) {
    double value = 0;
    for (int i = 0; i < count; ++i) value = value * x + coefficients[i];
    return value;
}
