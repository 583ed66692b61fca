// One of several requests that a call is made of, which are sent one right after the other.
#pragma once

#include <cstdint>

namespace longshort {

struct CallPart {
  int64_t index = 0;
  int64_t count = 1;
  // Of the call's work, about; over 0.
  double share = 1;
};

}  // namespace longshort
