// SPDX-License-Identifier: BSD-2-Clause
// How arrays are passed as views. It follows where a call passes an array: the headers that were included by then
// decide which views there are.
#if (defined(_CUDA_STD_SPAN) || defined(_LIBCUDACXX_SPAN)) && !defined(NCA_SPAN)
#define NCA_SPAN 1
namespace nca {
template <class nca_T, int nca_N, char nca_L> struct nca_array_form<nca_by_span, nca_T, nca_N, nca_L> {
    using nca_type = cuda::std::span<nca_T>;
    using nca_passed = const nca_view<nca_T, nca_N, false>&;
    static __device__ nca_type nca_of(nca_passed nca_v) {
        unsigned long long nca_size = 1;
        for (int nca_i = 0; nca_i < nca_N; ++nca_i) nca_size *= nca_v.nca_words[nca_i];
        return nca_type(nca_v.nca_data, nca_size);
    }
};
}
#endif
#if (defined(_CUDA_STD_MDSPAN) || defined(_LIBCUDACXX_MDSPAN)) && !defined(NCA_MDSPAN)
#define NCA_MDSPAN 1
namespace nca {
template <class nca_T, int nca_N, char nca_L> struct nca_array_form<nca_by_mdspan, nca_T, nca_N, nca_L> {
    using nca_extents = cuda::std::dextents<long long, nca_N>;
    using nca_column = typename nca_pick<nca_L == 'F', cuda::std::layout_left, cuda::std::layout_stride>::nca_type;
    using nca_layout = typename nca_pick<nca_L == 'C', cuda::std::layout_right, nca_column>::nca_type;
    using nca_type = cuda::std::mdspan<nca_T, nca_extents, nca_layout>;
    using nca_passed = const nca_view<nca_T, nca_N, nca_L == 'A'>&;
    template <int... nca_I> static __device__ nca_type nca_of(nca_passed nca_v, nca_ints<nca_I...>) {
        nca_extents nca_shape(nca_v.nca_words[nca_I]...);
        if constexpr (nca_L == 'A') {
            using nca_mapping = typename cuda::std::layout_stride::template mapping<nca_extents>;
            cuda::std::array<long long, nca_N> nca_strides{nca_v.nca_words[nca_N + nca_I]...};
            return nca_type(nca_v.nca_data, nca_mapping(nca_shape, nca_strides));
        } else return nca_type(nca_v.nca_data, nca_shape);
    }
    static __device__ nca_type nca_of(nca_passed nca_v) { return nca_of(nca_v, nca_first<nca_N>()); }
};
}
#endif
