// What every kernel begins with: memory, and what HLSL lacks of 64-bit numbers.

RWByteAddressBuffer memory[] : register(u0, space1);
#define IN(A) memory[NonUniformResourceIndex((A).y)]

// A byte of a buffer, and the buffer's number.
typedef uint2 Address;
Address moved(Address a, uint64_t bytes) { return uint2(a.x + (uint)bytes, a.y); }
Address at(Address a, int index, uint bytes) { return moved(a, (uint64_t)(int64_t)index * bytes); }
Address at(Address a, uint index, uint bytes) { return moved(a, (uint64_t)index * bytes); }
Address at(Address a, int64_t index, uint bytes) { return moved(a, (uint64_t)index * bytes); }
Address at(Address a, uint64_t index, uint bytes) { return moved(a, index * bytes); }

uint64_t join(uint2 words) { return (uint64_t)words.y << 32 | words.x; }
uint2 split(uint64_t x) { return uint2((uint)x, (uint)(x >> 32)); }

uint2 halves(double x) {
    uint low, high;
    asuint(x, low, high);
    return uint2(low, high);
}
double whole(uint2 words) { return asdouble(words.x, words.y); }

// The high word of a product, of products of half words.
uint mul_high(uint a, uint b) {
    uint al = a & 0xffff, ah = a >> 16, bl = b & 0xffff, bh = b >> 16;
    uint middle = ah * bl + (al * bl >> 16);
    uint other = al * bh + (middle & 0xffff);
    return ah * bh + (middle >> 16) + (other >> 16);
}

// Between 64-bit integers and float32. The compiler's SPIR-V goes by integers of 32 bits, and loses the rest.
float to_float(uint64_t x) {
    uint2 parts = split(x);
    if (parts.y == 0) return (float)parts.x;
    uint shift = firstbithigh(parts.y) + 1;
    uint rest = (uint)(x & (((uint64_t)1 << shift) - 1)) != 0 ? 1 : 0;
    // What is left of 64 bits is enough to round right, with a bit for the rest.
    precise float rounded_part = (float)((uint)(x >> shift) | rest);
    precise float result = rounded_part * asfloat((127 + shift) << 23);
    return result;
}
float to_float(int64_t x) {
    float size = to_float(x < 0 ? (uint64_t)0 - (uint64_t)x : (uint64_t)x);
    return x < 0 ? -size : size;
}
uint64_t to_uint64(float x) {
    uint bits = asuint(x);
    int exponent = (int)(bits >> 23 & 0xff) - 150;
    uint64_t significand = (bits & 0x7fffff) | 0x800000;
    if (exponent < -23) return 0;
    uint64_t size = exponent < 0 ? significand >> (uint)-exponent : significand << (uint)exponent;
    return bits >> 31 ? (uint64_t)0 - size : size;
}

// Between float32 and float16, whose conversion need not round to nearest even nor keep subnormal numbers.
uint half_of(float x) {
    uint bits = asuint(x), size = bits & 0x7fffffff, sign = bits >> 16 & 0x8000;
    if (size >= 0x47800000) return sign | (size > 0x7f800000 ? 0x7e00 : 0x7c00);
    precise float aligned = asfloat(size) + 0.5f;
    return sign | (size < 0x38800000 ? asuint(aligned) - 0x3f000000 : (size + 0xfff + (size >> 13 & 1) - 0x38000000) >> 13);
}
float float_of(uint bits) {
    uint size = bits & 0x7fff, sign = (bits & 0x8000) << 16;
    precise float subnormal = (float)size * asfloat(0x33800000);
    uint normal = (size << 13) + (112u << 23), special = size << 13 | 0x7f800000;
    return asfloat(sign | (size >= 0x7c00 ? special : size < 0x400 ? asuint(subnormal) : normal));
}

double magnitude(double x) {
    uint2 bits = halves(x);
    return whole(uint2(bits.x, bits.y & 0x7fffffff));
}

double truncated(double x) {
    uint2 bits = halves(x);
    int exponent = (int)(bits.y >> 20 & 0x7ff) - 1023;
    if (exponent >= 52) return x;  // also infinities and NaN
    if (exponent < 0) return whole(uint2(0, bits.y & 0x80000000));
    uint64_t kept = ~(0x000fffffffffffffull >> exponent);
    return whole(split(join(bits) & kept));
}

double floored(double x) {
    precise double whole_part = truncated(x);
    precise double below = whole_part - 1.0;
    return whole_part > x ? below : whole_part;
}

double ceiled(double x) {
    precise double whole_part = truncated(x);
    precise double above = whole_part + 1.0;
    return whole_part < x ? above : whole_part;
}

// To the nearest integer, halves to even: the sum rounds there.
double rounded(double x) {
    uint2 bits = halves(x);
    if (((bits.y >> 20) & 0x7ff) >= 1023 + 52) return x;
    precise double sum = magnitude(x) + 4503599627370496.0;
    precise double rest = sum - 4503599627370496.0;
    uint2 result = halves(rest);
    return whole(uint2(result.x, (result.y & 0x7fffffff) | (bits.y & 0x80000000)));
}

