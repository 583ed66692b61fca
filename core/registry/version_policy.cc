#include "core/registry/version_policy.h"

#include <algorithm>
#include <iterator>

namespace longshort {

std::set<int64_t> VersionPolicy::Choose(const std::set<int64_t>& versions) const {
  if (kind == Kind::kAll) return versions;
  std::set<int64_t> chosen;
  if (kind == Kind::kSpecific) {
    std::set_intersection(versions.begin(), versions.end(), specific.begin(), specific.end(),
                          std::inserter(chosen, chosen.end()));
    return chosen;
  }
  for (auto version = versions.rbegin(); version != versions.rend() && std::ssize(chosen) < latest; ++version) {
    chosen.insert(*version);
  }
  return chosen;
}

}  // namespace longshort
