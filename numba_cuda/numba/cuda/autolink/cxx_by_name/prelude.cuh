// SPDX-License-Identifier: BSD-2-Clause
// What follows each library's source: how calls describe the types of their results, and pass values as C does.
//
// A type is described by numbers, which the module results reads. A value is returned as what C passes: a number, a
// pointer, or a struct of them. The numbers, and what is written for each count of members, come from the module
// prelude, before this text. It uses only the compiler's own traits: <cuda/std/type_traits> alone takes far longer.
// All names begin with nca_: no macro of a user is called that.

// Both are there if the source has included a header of libcu++ with a tuple, a pair or an array.
#if defined(_CUDA_STD___FWD_GET_H) || defined(_LIBCUDACXX___FWD_GET_H)
#define NCA_TUPLES 1
#endif
namespace nca {
struct nca_here { void* nca_at; };
template <class nca_T> struct nca_bare { using nca_type = nca_T; };
template <class nca_T> struct nca_bare<nca_T&> { using nca_type = typename nca_bare<nca_T>::nca_type; };
template <class nca_T> struct nca_bare<nca_T&&> { using nca_type = typename nca_bare<nca_T>::nca_type; };
template <class nca_T> struct nca_bare<const nca_T> { using nca_type = typename nca_bare<nca_T>::nca_type; };
template <class nca_T> struct nca_bare<volatile nca_T> { using nca_type = typename nca_bare<nca_T>::nca_type; };
template <class nca_T> struct nca_bare<const volatile nca_T> { using nca_type = typename nca_bare<nca_T>::nca_type; };
template <class nca_T> using nca_plain = typename nca_bare<nca_T>::nca_type;
template <bool nca_B, class nca_A, class nca_C> struct nca_pick { using nca_type = nca_A; };
template <class nca_A, class nca_C> struct nca_pick<false, nca_A, nca_C> { using nca_type = nca_C; };
template <class nca_A, class nca_B> inline constexpr bool nca_same = false;
template <class nca_A> inline constexpr bool nca_same<nca_A, nca_A> = true;
template <class nca_T> __device__ nca_T&& nca_made() noexcept;
// An argument of a trial, as its member: a variable, a temporary, or a bit-field. To C++ a bit-field is a variable of its
// type, except that no reference that is not const can be bound to it.
template <class nca_T> struct nca_held { nca_T nca_x; };
template <class nca_T> struct nca_held<nca_T&&> { nca_T nca_x; };
template <class nca_T, int nca_N> struct nca_bit_field { nca_T nca_x : nca_N; };
template <class nca_R, class... nca_A> __device__ nca_R nca_result(nca_R (*)(nca_A...));
template <class... nca_T> struct nca_list { static constexpr int nca_size = sizeof...(nca_T); };
template <unsigned long long... nca_N> struct nca_told {};
template <class nca_A, class nca_B> struct nca_joined;
template <unsigned long long... nca_A, unsigned long long... nca_B>
struct nca_joined<nca_told<nca_A...>, nca_told<nca_B...>> {
    using nca_type = nca_told<nca_A..., nca_B...>;
};
template <class... nca_T> struct nca_all;
template <> struct nca_all<> { using nca_type = nca_told<>; };
template <class nca_A, class... nca_T> struct nca_all<nca_A, nca_T...> {
    using nca_type = typename nca_joined<nca_A, typename nca_all<nca_T...>::nca_type>::nca_type;
};
template <class... nca_T> using nca_all_t = typename nca_all<nca_T...>::nca_type;
// A number that stands for the name of a type.
template <class nca_T> constexpr __device__ unsigned long long nca_name() {
    unsigned long long nca_h = 14695981039346656037ull;
    for (const char* nca_c = __PRETTY_FUNCTION__; *nca_c; ++nca_c)
        nca_h = (nca_h ^ static_cast<unsigned char>(*nca_c)) * 1099511628211ull;
    return nca_h;
}
// NVRTC does not compute a function's value where it asks whether a class is convertible.
template <class nca_T, unsigned long long nca_N> inline constexpr bool nca_is_named = nca_name<nca_T>() == nca_N;
// Variables that no code refers to. Their lowered names spell their arguments.
template <class nca_T> extern __device__ char nca_tell;
template <unsigned long long... nca_N> extern __device__ char nca_tell_numbers;

template <class nca_T, bool nca_E> struct nca_under { using nca_type = nca_T; };
template <class nca_T> struct nca_under<nca_T, true> { using nca_type = __underlying_type(nca_T); };
template <class nca_T> using nca_under_t = typename nca_under<nca_T, __is_enum(nca_T)>::nca_type;

// Complex numbers: classes of two parts, .real() and .imag().
template <class nca_T>
__device__ auto nca_part_of(nca_T& nca_v, int) -> nca_plain<decltype(nca_v.imag(), nca_v.real())>;
template <class nca_T> __device__ void nca_part_of(nca_T&, long);
template <class nca_T, class nca_P = decltype(nca_part_of(nca_made<nca_T&>(), 0))>
inline constexpr bool nca_is_complex = false;
template <class nca_T> inline constexpr bool nca_is_complex<nca_T, float> = sizeof(nca_T) == 8;
template <class nca_T> inline constexpr bool nca_is_complex<nca_T, double> = sizeof(nca_T) == 16;

// Tuples, pairs and arrays of libcu++.
#ifdef NCA_TUPLES
template <class nca_T> __device__ auto nca_tuple_size(int) -> char (&)[cuda::std::tuple_size<nca_T>::value + 1];
#endif
template <class nca_T> __device__ auto nca_tuple_size(long) -> char (&)[1];
template <class nca_T> inline constexpr int nca_tuple_size_v = sizeof(nca_tuple_size<nca_T>(0)) - 1;

// How many members an aggregate has: it can be initialised by as many empty lists, and not by more.
template <int... nca_I> struct nca_ints {};
template <class nca_A, int nca_N> struct nca_counted;
template <int... nca_I, int nca_N>
struct nca_counted<nca_ints<nca_I...>, nca_N> : nca_counted<nca_ints<nca_I..., sizeof...(nca_I)>, nca_N - 1> {};
template <int... nca_I> struct nca_counted<nca_ints<nca_I...>, 0> { using nca_type = nca_ints<nca_I...>; };
template <int nca_N> using nca_first = typename nca_counted<nca_ints<>, nca_N>::nca_type;
// The name of a type and a bracket, in numbers of eight characters.
template <class nca_T> constexpr __device__ const char* nca_spelled() {
    const char* nca_c = __PRETTY_FUNCTION__;
    while (*nca_c != '=') ++nca_c;
    return nca_c + 1;
}
template <class nca_T> constexpr __device__ int nca_words() {
    int nca_n = 0;
    for (const char* nca_c = nca_spelled<nca_T>(); *nca_c; ++nca_c) ++nca_n;
    return (nca_n + 7) / 8;
}
template <class nca_T> constexpr __device__ unsigned long long nca_word(int nca_place) {
    unsigned long long nca_w = 0;
    int nca_n = 0;
    for (const char* nca_c = nca_spelled<nca_T>(); *nca_c && nca_n < 8 * nca_place + 8; ++nca_c, ++nca_n)
        if (nca_n >= 8 * nca_place)
            nca_w |= static_cast<unsigned long long>(static_cast<unsigned char>(*nca_c)) << 8 * (nca_n % 8);
    return nca_w;
}
template <class nca_T, class nca_I> struct nca_spelling;
template <class nca_T, int... nca_I> struct nca_spelling<nca_T, nca_ints<nca_I...>> {
    using nca_type = nca_told<sizeof...(nca_I), nca_word<nca_T>(nca_I)...>;
};
template <class nca_T, int nca_N> constexpr __device__ bool nca_takes() {
    return sizeof(nca_empty<nca_N>::template nca_in<nca_T>(0)) == sizeof(nca_yes);
}
// Between LOW, which it takes, and HIGH, which it does not.
template <class nca_T, int nca_LOW, int nca_HIGH> constexpr __device__ int nca_most_taken() {
    if constexpr (nca_HIGH - nca_LOW <= 1) return nca_LOW;
    else if constexpr (nca_takes<nca_T, (nca_LOW + nca_HIGH) / 2>())
        return nca_most_taken<nca_T, (nca_LOW + nca_HIGH) / 2, nca_HIGH>();
    else return nca_most_taken<nca_T, nca_LOW, (nca_LOW + nca_HIGH) / 2>();
}
template <class nca_T> constexpr __device__ int nca_count() {
    if constexpr (__is_class(nca_T) && __is_aggregate(nca_T) && !__is_empty(nca_T)) {
        if constexpr (nca_takes<nca_T, nca_most + 1>()) return 0;
        else return nca_most_taken<nca_T, 0, nca_most + 1>();
    } else return 0;
}
template <class nca_T> struct nca_member { using nca_type = nca_T; };
template <class nca_T> struct nca_member<nca_T&> { using nca_type = nca_T; };
// A bit-field is copied: no reference can be bound to it.
struct nca_types_of { template <class... nca_A> __device__ nca_list<nca_A...> operator()(const nca_A&...) const; };

// What C passes for a number or an enumerator: Python has no enumerations of bool.
template <class nca_T> using nca_passed_under = typename nca_pick<
    __is_enum(nca_T) && nca_same<nca_under_t<nca_T>, bool>, unsigned char, nca_under_t<nca_T>>::nca_type;
template <class nca_T, bool nca_E> struct nca_number_code {
    using nca_type = nca_told<nca_plain_code<nca_T>::nca_value>;
};
template <class nca_T> struct nca_number_code<nca_T, true> {
    using nca_type = nca_all_t<nca_told<nca_code_enumerator, nca_plain_code<nca_under_t<nca_T>>::nca_value>,
                               typename nca_spelling<nca_T, nca_first<nca_words<nca_T>()>>::nca_type>;
};
// Enumerators, since static members would be variables.
template <class nca_T> constexpr __device__ bool nca_is_value();
enum nca_kind { nca_as_plain, nca_as_complex, nca_as_tuple, nca_as_struct, nca_as_object, nca_as_record };
template <class nca_T> inline constexpr int nca_record_number = -1;
template <class nca_T> inline constexpr bool nca_has_members = false;
template <class nca_T, int nca_N> struct nca_record_layout;  // does not compile if the layout has changed
template <class nca_T> constexpr __device__ nca_kind nca_kind_of() {
    if constexpr (nca_plain_code<nca_under_t<nca_T>>::nca_value >= 0) return nca_as_plain;
    else if constexpr (__is_class(nca_T) || __is_union(nca_T)) {
        if constexpr (nca_record_number<nca_T> >= 0) return nca_as_record;
        else if constexpr (!__is_class(nca_T)) return nca_as_object;
        else if constexpr (nca_is_complex<nca_T>) return nca_as_complex;
        else if constexpr (nca_tuple_size_v<nca_T> > nca_most) return nca_as_object;
        else if constexpr (nca_tuple_size_v<nca_T> > 0) return nca_as_tuple;
        else return nca_count<nca_T>() > 0 ? nca_as_struct : nca_as_object;
    } else return nca_as_object;
}
template <class nca_T> constexpr __device__ int nca_members() {  // 0 of classes that are not taken apart
    if constexpr (nca_has_members<nca_T> || nca_kind_of<nca_T>() == nca_as_struct) return nca_count<nca_T>();
    else return 0;
}
template <class nca_T, nca_kind nca_K = nca_kind_of<nca_T>()> struct nca_form {  // of objects
    using nca_code = nca_told<nca_code_object, sizeof(nca_T), alignof(nca_T)>;
    using nca_passed = void;
    static constexpr bool nca_whole = false;
};
template <class nca_T> struct nca_form<nca_T, nca_as_plain> {
    using nca_passed = nca_passed_under<nca_T>;
    using nca_code = typename nca_number_code<nca_T, __is_enum(nca_T)>::nca_type;
    static constexpr bool nca_whole = true;
    template <class nca_V> static __device__ nca_passed nca_give(nca_V&& nca_v) {
        return static_cast<nca_passed>(nca_v);
    }
};
template <> struct nca_form<decltype(nullptr), nca_as_object> {
    using nca_passed = const void*;
    using nca_code = nca_told<nca_code_pointer, 0>;
    static constexpr bool nca_whole = true;
    static __device__ nca_passed nca_give(decltype(nullptr)) { return nullptr; }
};
template <class nca_T> struct nca_pointee { using nca_code = nca_told<0>; };
template <class nca_T> struct nca_form<nca_T*, nca_as_object> {
    using nca_passed = nca_T*;
    using nca_to = nca_plain<nca_T>;
    template <class nca_P, bool nca_B> struct nca_code_of { using nca_type = nca_told<0>; };
    template <class nca_P> struct nca_code_of<nca_P, true> {
        using nca_type = nca_told<nca_plain_code<nca_P>::nca_value>;
    };
    using nca_code = nca_all_t<nca_told<nca_code_pointer>,
                               typename nca_code_of<nca_to, nca_plain_code<nca_to>::nca_value >= 0>::nca_type>;
    static constexpr bool nca_whole = true;
    static __device__ nca_passed nca_give(nca_T* nca_v) { return nca_v; }
};
template <class nca_T> struct nca_form<nca_T, nca_as_complex> {
    using nca_part = decltype(nca_part_of(nca_made<nca_T&>(), 0));
    using nca_passed = typename nca_pick<sizeof(nca_part) == 4, float2, double2>::nca_type;
    using nca_code = nca_told<nca_code_complex, nca_plain_code<nca_part>::nca_value>;
    static constexpr bool nca_whole = true;
    template <class nca_V> static __device__ nca_passed nca_give(nca_V&& nca_v) { return {nca_v.real(), nca_v.imag()}; }
};
template <class nca_L> struct nca_of_list;
template <class... nca_T> struct nca_of_list<nca_list<nca_T...>> {
    using nca_passed = nca_fields<typename nca_form<nca_plain<nca_T>>::nca_passed...>;
    using nca_code = nca_all_t<nca_told<sizeof...(nca_T)>, typename nca_form<nca_plain<nca_T>>::nca_code...>;
    static constexpr bool nca_whole = (nca_form<nca_plain<nca_T>>::nca_whole && ...);
};
template <class nca_T>
using nca_members_of = decltype(nca_bound<nca_count<nca_T>()>::nca_in(nca_made<nca_T&>(), nca_types_of{}));
// The bytes of an object, where its type is aligned.
template <class nca_T> union nca_copy {
    nca_T nca_v;
    __device__ explicit nca_copy(const void* nca_from) { ::memcpy((void*)this, nca_from, sizeof(nca_T)); }
    __device__ ~nca_copy() {}
};
template <class nca_T, bool nca_WHOLE> struct nca_of_struct {
    using nca_passed = typename nca_of_list<nca_members_of<nca_T>>::nca_passed;
    using nca_code = nca_all_t<nca_told<nca_code_struct, nca_name<nca_T>()>,
                               typename nca_of_list<nca_members_of<nca_T>>::nca_code>;
    static constexpr bool nca_whole = true;
    // Members of packed structs are anywhere, but a reference is taken for one to an aligned object.
    struct nca_giver {
        template <class nca_A> static __device__ auto nca_each(const nca_A& nca_a) {
            nca_copy<nca_A> nca_c((const void*)__builtin_addressof(nca_a));
            return nca_form<nca_plain<nca_A>>::nca_give(nca_c.nca_v);
        }
        template <class... nca_A> __device__ nca_passed operator()(const nca_A&... nca_a) const {
            return nca_passed{nca_each(nca_a)...};
        }
    };
    template <class nca_V> static __device__ nca_passed nca_give(nca_V&& nca_v) {
        nca_copy<nca_T> nca_c(__builtin_assume_aligned((const void*)__builtin_addressof(nca_v), alignof(nca_T)));
        return nca_bound<nca_count<nca_T>()>::nca_in(nca_c.nca_v, nca_giver{});
    }
};
template <class nca_T> struct nca_of_struct<nca_T, false> {
    using nca_code = nca_told<nca_code_object, sizeof(nca_T), alignof(nca_T)>;
    using nca_passed = void;
    static constexpr bool nca_whole = false;
};
template <class nca_T> struct nca_form<nca_T, nca_as_struct>
    : nca_of_struct<nca_T, nca_of_list<nca_members_of<nca_T>>::nca_whole> {};
// A class whose members are not known is passed as it is, and others as their members: these need not be where C has
// them.
template <class nca_T, bool nca_MEMBERS> struct nca_of_record {
    using nca_passed = nca_T;
    static constexpr bool nca_whole = true;
    template <class nca_V> static __device__ nca_passed nca_give(nca_V&& nca_v) { return nca_v; }
};
template <class nca_T> struct nca_of_record<nca_T, true> : nca_of_struct<nca_T, true> {};
template <class nca_T>
struct nca_form<nca_T, nca_as_record> : nca_of_record<nca_T, nca_has_members<nca_T>>,
                                        nca_record_layout<nca_T, nca_record_number<nca_T>> {
    using nca_code = nca_told<nca_code_record, nca_record_number<nca_T>>;
};
// Arrays: few elements are members of a struct, as which they are in registers.
template <class nca_E, int nca_N, bool nca_FEW> struct nca_items {
    struct nca_passed { typename nca_E::nca_passed nca_v[nca_N]; };
    template <class nca_V> static __device__ nca_passed nca_give(nca_V& nca_v) {
        nca_passed nca_r;
        for (int nca_i = 0; nca_i < nca_N; ++nca_i) nca_r.nca_v[nca_i] = nca_E::nca_give(nca_v[nca_i]);
        return nca_r;
    }
};
template <class nca_E, class nca_I> struct nca_few_items;
template <class nca_E, int... nca_I> struct nca_few_items<nca_E, nca_ints<nca_I...>> {
    template <int> using nca_each = typename nca_E::nca_passed;
    using nca_passed = nca_fields<nca_each<nca_I>...>;
    template <class nca_V> static __device__ nca_passed nca_give(nca_V& nca_v) {
        return nca_passed{nca_E::nca_give(nca_v[nca_I])...};
    }
};
template <class nca_E, int nca_N> struct nca_items<nca_E, nca_N, true> : nca_few_items<nca_E, nca_first<nca_N>> {};
template <class nca_E, int nca_N, bool nca_WHOLE> struct nca_of_array : nca_items<nca_E, nca_N, nca_N <= nca_most> {
    static constexpr bool nca_whole = true;
};
template <class nca_E, int nca_N> struct nca_of_array<nca_E, nca_N, false> {
    using nca_passed = void;
    static constexpr bool nca_whole = false;
};
template <class nca_E, unsigned long long nca_N>
struct nca_form<nca_E[nca_N], nca_as_object>
    : nca_of_array<nca_form<nca_plain<nca_E>>, nca_N, nca_form<nca_plain<nca_E>>::nca_whole> {
    using nca_code = nca_all_t<nca_told<nca_code_array, nca_N>, typename nca_form<nca_plain<nca_E>>::nca_code>;
};
#ifdef NCA_TUPLES
template <class nca_T, class nca_I> struct nca_of_tuple;
template <class nca_T, int... nca_I> struct nca_of_tuple<nca_T, nca_ints<nca_I...>> {
    template <int nca_J> using nca_each = nca_form<nca_plain<typename cuda::std::tuple_element<nca_J, nca_T>::type>>;
    static constexpr bool nca_whole = (nca_each<nca_I>::nca_whole && ...);
    using nca_passed = nca_fields<typename nca_each<nca_I>::nca_passed...>;
    using nca_code = typename nca_pick<
        nca_whole, nca_all_t<nca_told<nca_code_tuple, sizeof...(nca_I)>, typename nca_each<nca_I>::nca_code...>,
        nca_told<nca_code_object, sizeof(nca_T), alignof(nca_T)>>::nca_type;
    template <class nca_V> static __device__ nca_passed nca_give(nca_V&& nca_v) {
        return nca_passed{nca_each<nca_I>::nca_give(cuda::std::get<nca_I>(nca_v))...};
    }
};
template <class nca_T>
struct nca_form<nca_T, nca_as_tuple> : nca_of_tuple<nca_T, nca_first<nca_tuple_size_v<nca_T>>> {};
#endif

// Whether a number of an object at this place is not aligned, as in packed structs; of the numbers that are aligned to
// LIMIT bytes or fewer. A limit of 0 means all numbers, also those that only need not be aligned, in structs that are
// aligned to less than a member. Elements of tuples may be anywhere.
template <class nca_E, unsigned long long nca_N>
constexpr __device__ bool nca_cuts(nca_list<nca_E[nca_N]>*, unsigned long long nca_at, unsigned long long nca_limit) {
    for (unsigned long long nca_i = 0; nca_i < nca_N && nca_i < 16; ++nca_i)  // after which the places repeat
        if (nca_cuts((nca_list<nca_E>*)nullptr, nca_at + nca_i * sizeof(nca_E), nca_limit)) return true;
    return false;
}
template <class nca_T, class... nca_M>
constexpr __device__ bool nca_cuts_member(nca_list<nca_M...>*, unsigned long long nca_at, unsigned long long nca_limit) {
    unsigned long long nca_end = 0;
    bool nca_found = false, nca_is_loose = ((alignof(nca_M) > alignof(nca_T)) || ...);
    if (nca_limit == 0 && nca_is_loose) return true;
    if constexpr (nca_has_offsets<nca_T>(0)) {
        constexpr nca_offsets nca_o = nca_bound<nca_count<nca_T>()>::template nca_places<nca_T>();
        int nca_i = 0;
        ((nca_found |= nca_cuts((nca_list<nca_M>*)nullptr, nca_at + nca_o.nca_at[nca_i++], nca_limit)), ...);
        return nca_found;
    } else {
        ((nca_end += -nca_end % (alignof(nca_M) < alignof(nca_T) ? alignof(nca_M) : alignof(nca_T)),
          nca_found |= nca_cuts((nca_list<nca_M>*)nullptr, nca_at + nca_end, nca_limit), nca_end += sizeof(nca_M)), ...);
        // Of another size, it has bit-fields, and is packed if it is aligned to less than a member.
        return nca_end + -nca_end % alignof(nca_T) == sizeof(nca_T) ? nca_found : nca_is_loose;
    }
}
#ifdef NCA_TUPLES
template <class nca_T> constexpr __device__ bool nca_cuts_anywhere(nca_list<nca_T>* nca_l, unsigned long long nca_limit) {
    return nca_cuts(nca_l, 0, nca_limit) || nca_cuts(nca_l, alignof(nca_T), nca_limit);
}
template <class nca_T, int... nca_I>
constexpr __device__ bool nca_cuts_element(nca_ints<nca_I...>, unsigned long long nca_limit) {
    return (nca_cuts_anywhere((nca_list<typename cuda::std::tuple_element<nca_I, nca_T>::type>*)nullptr, nca_limit) || ...);
}
#endif
template <class nca_T>
constexpr __device__ bool nca_cuts(nca_list<nca_T>*, unsigned long long nca_at, unsigned long long nca_limit) {
#ifdef NCA_TUPLES
    if constexpr (nca_kind_of<nca_T>() == nca_as_tuple)
        return nca_cuts_element<nca_T>(nca_first<nca_tuple_size_v<nca_T>>{}, nca_limit);
    else
#endif
    if constexpr (nca_members<nca_T>() > 0)
        return nca_cuts_member<nca_T>((nca_members_of<nca_T>*)nullptr, nca_at, nca_limit);
    else return (nca_limit == 0 || alignof(nca_T) <= nca_limit) && nca_at % alignof(nca_T) != 0;
}
// Whether ptxas may lose bytes of a result.
template <class nca_R> inline constexpr bool nca_is_cut = nca_cuts((nca_list<nca_R>*)nullptr, 0, 0);
template <class nca_R> inline constexpr bool nca_is_cut<nca_R&> = false;
template <> inline constexpr bool nca_is_cut<void> = false;
// Whether CUDA's compiler may pass an argument wrongly by value. NVVM stores numbers byte by byte that are aligned to more
// than the argument, and others wherever they are, aligned or not. It copies a large argument as if it were aligned to 4.
template <class nca_T>
inline constexpr bool nca_is_lost = nca_cuts((nca_list<nca_T>*)nullptr, 0, alignof(nca_T))
                                    || (sizeof(nca_T) > 128 && alignof(nca_T) < 4 && nca_is_cut<nca_T>);
template <class nca_R> using nca_form_t = nca_form<nca_plain<nca_R>>;
// What a call returns to Python: nothing, if only C++ knows what it is.
template <class nca_R> using nca_returned = typename nca_form_t<nca_R>::nca_passed;
// What a call's result is cast to, and then returned as. A template for each function would take longer to compile.
template <class nca_R> struct nca_giver {
    nca_returned<nca_R> nca_v;
    template <class nca_V> __device__ explicit nca_giver(nca_V&& nca_r) : nca_v(nca_form_t<nca_R>::nca_give(nca_r)) {}
    __device__ operator nca_returned<nca_R>() const { return nca_v; }
};
template <class nca_R, class nca_P = nca_returned<nca_R>>
using nca_cast_t = typename nca_pick<
    nca_same<nca_P, void> || nca_same<nca_P, nca_R> || nca_kind_of<nca_R>() == nca_as_plain, nca_P,
    nca_giver<nca_R>>::nca_type;

// Assigns what a call returned to a variable of its type, from what it is in Python: its structs convert to themselves,
// and its tuples are arrays or structs.
template <class nca_T, class nca_S> __device__ void nca_assign(nca_T& nca_t, const nca_S& nca_s);
template <class nca_E, class nca_S, unsigned long long nca_N>
__device__ void nca_assign(nca_E (&nca_t)[nca_N], const nca_S (&nca_s)[nca_N]) {
    for (int nca_i = 0; nca_i < nca_N; ++nca_i) nca_assign(nca_t[nca_i], nca_s[nca_i]);
}
#ifdef NCA_TUPLES
template <class nca_T, class nca_I> struct nca_assigner;
template <class nca_T, int... nca_I> struct nca_assigner<nca_T, nca_ints<nca_I...>> {
    nca_T& nca_t;
    template <class... nca_S> __device__ void operator()(const nca_S&... nca_s) const {
        (nca_assign(cuda::std::get<nca_I>(nca_t), nca_s), ...);
    }
};
#endif
template <class nca_T, class nca_S> __device__ void nca_assign(nca_T& nca_t, const nca_S& nca_s) {
    if constexpr (nca_kind_of<nca_T>() == nca_as_complex) nca_t = nca_T(nca_s.real(), nca_s.imag());
#ifdef NCA_TUPLES
    else if constexpr (nca_kind_of<nca_T>() == nca_as_tuple) {
        constexpr int nca_n = nca_tuple_size_v<nca_T>;
        nca_bound<nca_n>::nca_in(nca_s, nca_assigner<nca_T, nca_first<nca_n>>{nca_t});
    }
#endif
    else nca_t = nca_T(nca_s);
}
// Stands for a struct of which a value cannot be passed: C++ can take a reference, and no copy.
template <class nca_T> struct nca_place {
    nca_place(const nca_place&) = delete;
    __device__ operator nca_T&() const;
    __device__ operator nca_plain<nca_T>() const = delete;
};
template <class nca_R, class nca_T> struct nca_referred_to { using nca_type = nca_R; };
template <class nca_R, class nca_T> struct nca_referred_to<nca_R&, nca_T> {
    using nca_type = typename nca_pick<nca_is_lost<nca_T>, const nca_place<nca_R>&, nca_R&>::nca_type;
};
template <class nca_R> using nca_referred = typename nca_referred_to<nca_R, nca_plain<nca_R>>::nca_type;
// The object of a class, or of one derived from it, whose member function is called; and memory for one, or its bytes.
template <class nca_T> __device__ nca_yes nca_is_a(const nca_T*);
template <class nca_T> __device__ nca_no nca_is_a(...);
template <class nca_T, class nca_U> struct nca_base { using nca_type = nca_T&&; };
template <class nca_T, class nca_U> struct nca_base<nca_T, const nca_U> { using nca_type = const nca_T&&; };
template <class nca_T, class nca_U> struct nca_base<nca_T, nca_U&> { using nca_type = nca_T&; };
template <class nca_T, class nca_U> struct nca_base<nca_T, const nca_U&> { using nca_type = const nca_T&; };
template <class nca_T, class nca_U,
          int (*)[sizeof(nca_is_a<nca_T>(nca_made<nca_plain<nca_U>*>())) == sizeof(nca_yes) ? 1 : -1] = nullptr>
__device__ typename nca_base<nca_T, nca_U>::nca_type nca_self(nca_U&& nca_o) {
    return static_cast<typename nca_base<nca_T, nca_U>::nca_type>(nca_o);
}
template <class nca_T, class nca_U> __device__ nca_T& nca_self(const nca_place<nca_U>&);  // in a trial
template <class nca_T, class nca_U,
          int (*)[sizeof(nca_is_a<nca_T>(nca_made<nca_plain<nca_U>*>())) == sizeof(nca_yes) ? 1 : -1] = nullptr>
__device__ nca_U* nca_memory(nca_U& nca_m) { return __builtin_addressof(nca_m); }
template <class nca_T, class nca_U, int (*)[sizeof(nca_U) == 1 && !__is_class(nca_U) ? 1 : -1] = nullptr>
__device__ void* nca_memory(nca_U& nca_m) { return &nca_m; }
template <class nca_T, class nca_U> __device__ nca_U* nca_memory(const nca_place<nca_U>&);
// An array of Numba as C++ finds it in memory: its data, the extents, and the strides in elements of strided ones.
template <class nca_T, int nca_N, bool nca_STRIDED> struct nca_view {
    nca_T* nca_data;
    long long nca_words[nca_N * (1 + nca_STRIDED)];
};
// Whether numbers of the type nca_T are values of an enumeration, or of its underlying type nca_U.
template <class nca_U, class nca_T, nca_T... nca_N>
inline constexpr bool nca_has =
    ((static_cast<nca_T>(static_cast<nca_U>(nca_N)) == nca_N && (static_cast<nca_U>(nca_N) > nca_U()) == (nca_N > 0)) && ...);
// Whether an enumeration has an enumerator of this value: the compiler writes "(Mode)2" where it has none. It does so too
// for all values of an enumeration without a name, "(enum <unnamed>)2", and of one in a class template, "(In<int>::Mode)2".
template <auto nca_V> __device__ constexpr bool nca_is_enumerator() {
    const char* nca_p = __PRETTY_FUNCTION__;
    while (*nca_p != '=') ++nca_p;
    if (nca_p[2] != '(') return true;
    while (*nca_p != ')' && *nca_p != '<') ++nca_p;
    return *nca_p == '<';
}
template <long long... nca_N> struct nca_numbers {};
template <class nca_M, class nca_E, bool nca_B, class nca_T, nca_T... nca_N> __device__ constexpr bool nca_enumerates() {
    if constexpr (nca_B) {
        if constexpr (nca_has<nca_under_t<nca_E>, nca_T, nca_N...>)
            return (nca_is_enumerator<static_cast<nca_E>(nca_N)>() && ...) && nca_M::template nca_agree<nca_E>();
    }
    return false;
}
// A member of an enumeration in Python, whose members nca_M has by their names: a number, and in C++ a value of any
// enumeration with enumerators of the numbers of all members, where those of the same names have the same numbers.
template <class nca_M, class nca_T, nca_T... nca_N> struct nca_enumerator {
    nca_T nca_value;
    __device__ operator nca_T() const { return nca_value; }
    template <class nca_E, int (*)[nca_enumerates<nca_M, nca_E, __is_enum(nca_E), nca_T, nca_N...>() ? 1 : -1] = nullptr>
    __device__ operator nca_E() const { return static_cast<nca_E>(nca_value); }
};
enum { nca_by_pointer, nca_by_mdspan, nca_by_span, nca_by_element };
template <int nca_MODE, class nca_T, int nca_N, char nca_L> struct nca_array_form;
template <class nca_T, int nca_N, char nca_L> struct nca_array_form<nca_by_pointer, nca_T, nca_N, nca_L> {
    using nca_type = nca_T*;
    using nca_passed = nca_T*;
    static __device__ nca_type nca_of(nca_T* nca_v) { return nca_v; }
};
template <class nca_T, int nca_N, char nca_L> struct nca_array_form<nca_by_element, nca_T, nca_N, nca_L> {
    using nca_type = nca_T&;
    using nca_passed = nca_T*;
    static __device__ nca_type nca_of(nca_T* nca_v) { return *nca_v; }
};
}
inline __device__ void* operator new(decltype(sizeof(0)), nca::nca_here nca_h) noexcept { return nca_h.nca_at; }
inline __device__ void operator delete(void*, nca::nca_here) noexcept {}
