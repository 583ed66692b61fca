// What the library makes of a row's bits: its float32 matrix products round differently with the number of rows, and of
// threads, its convolutions with the number of images. All else that a language model computes for a row does not
// depend on the others.
#pragma once

#include <cstdint>
#include <string>

namespace longshort {

// So many rows keep their bits whatever the number beyond (trap 13 of the design).
inline constexpr int64_t kEnoughRows = 16;

struct SameBits {
  double identical = 0;           // a fraction
  double largest_difference = 0;  // of any two numbers; they are of about 1
};

// Which rows have the bits that they have in a large product on one thread: of products of `rows` rows on so many
// threads, in shapes from 16 -> 16 to 2048 -> 256.
SameBits CompareRows(int64_t rows, int threads);

// Whether that is so here: products of at least kEnoughRows rows on so many threads keep every bit.
bool EnoughRowsKeepTheirBits(int threads);

// Which of so many images have the bits that each has alone, in a convolution that makes patches of them, on one
// thread.
SameBits CompareImages(int64_t images);

}  // namespace longshort
