// What a fuzz target claims about its input's result; a claim that fails ends the process, as libFuzzer wants it.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace longshort {

inline void Require(bool claim, const char* what) {
  if (claim) return;
  std::fprintf(stderr, "claim does not hold: %s\n", what);
  std::abort();
}

}  // namespace longshort
