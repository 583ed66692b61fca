// What the library's float32 matrix products make of a row's bits: they round differently with the number of rows, and
// of threads. All else that a model computes for a row does not depend on the others.
#pragma once

#include <cstdint>
#include <string>

namespace longshort {

// So many rows keep their bits whatever the number beyond (trap 13 of the design).
inline constexpr int64_t kEnoughRows = 16;

struct RowBits {
  double identical = 0;           // of the rows, those with the bits that they have in a large product on one thread
  double largest_difference = 0;  // of any two numbers; they are of about 1
};
// Of products of `rows` rows on so many threads, in shapes from 16 -> 16 to 2048 -> 256.
RowBits CompareRows(int64_t rows, int threads);

// Whether that is so here: products of at least kEnoughRows rows on so many threads keep every bit.
bool EnoughRowsKeepTheirBits(int threads);

}  // namespace longshort
