// Device functions for kernels. Kernels can call every __device__ function of this namespace by its name. Numbers are
// passed by value, and arrays as pointers.
namespace sample_library {

// Return 0 below lower, 1 above upper, and a smooth transition between.
__device__ float smooth_step(float lower, float upper, float x) {
    const float t = fminf(fmaxf((x - lower) / (upper - lower), 0.0f), 1.0f);
    return t * t * (3.0f - 2.0f * t);
}

// Return the value of a polynomial. The coefficients are in descending order of powers.
__device__ double polynomial(const double* coefficients, int count, double x) {
    double value = 0;
    for (int i = 0; i < count; ++i) value = value * x + coefficients[i];
    return value;
}

}  // namespace sample_library
