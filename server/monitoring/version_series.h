// Series with the labels model and version. They exist as long as an engine of the version, and then until a scrape has
// shown their last values.
//
// Thread-safe.
#pragma once

#include <prometheus/family.h>
#include <prometheus/labels.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"

namespace longshort::server {

// The series of one version.
class VersionSeries final {
 public:
  VersionSeries(std::string model, int64_t version)
      : labels_{{"model", std::move(model)}, {"version", std::to_string(version)}} {}
  VersionSeries(const VersionSeries&) = delete;
  VersionSeries& operator=(const VersionSeries&) = delete;
  ~VersionSeries() {
    for (const std::function<void()>& remove : removals_) remove();
  }

  // Returns the version's series of a family, with the additional labels `more`; makes it at the first call. `family`
  // must outlive this.
  template <typename Metric, typename... Arguments>
  Metric& Add(prometheus::Family<Metric>& family, const prometheus::Labels& more = {}, const Arguments&... arguments) {
    prometheus::Labels labels = labels_;
    labels.insert(more.begin(), more.end());
    const MutexLock lock(mutex_);
    Metric& metric = family.Add(labels, arguments...);
    if (added_.insert(&metric).second) removals_.push_back([&family, &metric] { family.Remove(&metric); });
    return metric;
  }

 private:
  const prometheus::Labels labels_;

  Mutex mutex_;
  std::set<const void*> added_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::function<void()>> removals_ ABSL_GUARDED_BY(mutex_);
};

// The series of all versions. Engines of one version share them; there are two engines while one replaces the other.
class SeriesOfVersions final {
 public:
  // A reference to a version's series. Without references they wait for Remove.
  using Held = std::unique_ptr<VersionSeries, std::function<void(VersionSeries*)>>;

  // This must outlive the returned reference.
  Held Of(const std::string& model, int64_t version) {
    const std::pair key(model, version);
    const MutexLock lock(mutex_);
    Entry& entry = entries_[key];
    if (entry.series == nullptr) entry.series = std::make_unique<VersionSeries>(model, version);
    ++entry.holders;
    return Held(entry.series.get(), [this, key](VersionSeries*) { Release(key); });
  }

  // The versions without references.
  std::vector<std::pair<std::string, int64_t>> Unheld() const {
    const MutexLock lock(mutex_);
    std::vector<std::pair<std::string, int64_t>> unheld;
    for (const auto& [version, entry] : entries_) {
      if (entry.holders == 0) unheld.push_back(version);
    }
    return unheld;
  }
  // Removes the series of these versions, except those that have references again.
  void Remove(const std::vector<std::pair<std::string, int64_t>>& versions) {
    const MutexLock lock(mutex_);  // Of must not return series that are being removed
    for (const auto& version : versions) {
      const auto entry = entries_.find(version);
      if (entry != entries_.end() && entry->second.holders == 0) entries_.erase(entry);
    }
  }

 private:
  struct Entry {
    int64_t holders = 0;
    std::unique_ptr<VersionSeries> series;
  };

  void Release(const std::pair<std::string, int64_t>& key) {
    const MutexLock lock(mutex_);
    --entries_.find(key)->second.holders;
  }

  mutable Mutex mutex_;
  std::map<std::pair<std::string, int64_t>, Entry> entries_ ABSL_GUARDED_BY(mutex_);  // by model and version
};

}  // namespace longshort::server
