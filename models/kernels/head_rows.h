// Where a kernel finds one head's rows.
#pragma once

#include <cstdint>

namespace longshort::models::cpu {

// One head's channels of the rows of a matrix: row i begins at data + i * stride.
template <typename Float>
struct HeadRows {
  Float* data = nullptr;
  int64_t stride = 0;
};

}  // namespace longshort::models::cpu
