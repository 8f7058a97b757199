// SPDX-License-Identifier: BSD-2-Clause
// Follows a source that declares variables that the host sets: what compares their declarations.
// The size of an array without one is not known. Where the unit has no such variable, "none" is found.
namespace numba_cuda_autolink_variables {
struct none {};
template <class t> struct bytes { enum { is = sizeof(t) }; };
template <> struct bytes<none> { enum { is = 0 }; };
template <class t> struct bytes<t&> : bytes<t> {};
template <class t> struct bytes<t[]> { enum { is = 0 }; };
// The bytes of a floating-point number, 1 of an integer, and 0 of what may stand for anything.
template <class t> struct number { enum { is = 0 }; };
template <class t> struct number<const t> : number<t> {};
template <class t> struct number<volatile t> : number<t> {};
template <class t> struct number<const volatile t> : number<t> {};
template <> struct number<float> { enum { is = 4 }; };
template <> struct number<double> { enum { is = 8 }; };
template <> struct number<short> { enum { is = 1 }; };
template <> struct number<int> { enum { is = 1 }; };
template <> struct number<long> { enum { is = 1 }; };
template <> struct number<long long> { enum { is = 1 }; };
template <> struct number<unsigned short> { enum { is = 1 }; };
template <> struct number<unsigned int> { enum { is = 1 }; };
template <> struct number<unsigned long> { enum { is = 1 }; };
template <> struct number<unsigned long long> { enum { is = 1 }; };
template <class t> struct element { typedef t type; };
template <class t> struct element<t&> : element<t> {};
template <class t> struct element<t[]> : element<t> {};
template <class t, decltype(sizeof(0)) n> struct element<t[n]> : element<t> {};
template <class t, int n> struct has {
    enum { found = number<typename element<t>::type>::is, is = found == 0 || n == 0 || int(found) == n };
};
}
