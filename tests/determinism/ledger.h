// The results of a mix's comparisons, by kind of request.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "tests/determinism/answer.h"

namespace longshort {

// Thread-safe.
class Ledger final {
 public:
  struct Line {
    int64_t cases = 0;
    int64_t cut_short = 0;     // cancelled, or ended by failures: what there was, was compared
    int64_t identical = 0;     // bit by bit
    int64_t other_tokens = 0;  // within the sampler's margin
    double largest = 0;        // difference of any log-probability or logit
  };

  void Add(const std::string& kind, const Difference& difference, bool whole);
  std::map<std::string, Line> lines() const;
  // Of all kinds.
  Line Sum() const;
  // As a table.
  std::string Text() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, Line> lines_;  // guarded by mutex_
};

}  // namespace longshort
