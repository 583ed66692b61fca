// Which versions of a model are to be loaded, of those that there are.
#pragma once

#include <cstdint>
#include <set>

namespace longshort {

struct VersionPolicy {
  enum class Kind { kLatest, kSpecific, kAll };

  Kind kind = Kind::kLatest;
  // Of kLatest: how many of the highest versions.
  int64_t latest = 1;
  // Of kSpecific. Those that are not there are left out.
  std::set<int64_t> specific = {};

  std::set<int64_t> Choose(const std::set<int64_t>& versions) const;
};

}  // namespace longshort
