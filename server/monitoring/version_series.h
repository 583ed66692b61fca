// Series with the labels model and version. They exist as long as an engine of the version, and then for some time, in
// which all scrapers read their last values.
//
// Thread-safe.
#pragma once

#include <prometheus/family.h>
#include <prometheus/labels.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "base/clock.h"
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
  // A reference to a version's series. Without references they wait for RemoveUnheld.
  using Held = std::unique_ptr<VersionSeries, std::function<void(VersionSeries*)>>;

  // `clock` must outlive this.
  explicit SeriesOfVersions(const Clock& clock) : clock_(clock) {}

  // This must outlive the returned reference.
  Held Of(const std::string& model, int64_t version) {
    const std::pair key(model, version);
    const MutexLock lock(mutex_);
    Entry& entry = entries_[key];
    if (entry.series == nullptr) entry.series = std::make_unique<VersionSeries>(model, version);
    ++entry.holders;
    return Held(entry.series.get(), [this, key](VersionSeries*) { Release(key); });
  }

  // Removes the series of versions without references: those that have had none since before `time`, and all but the
  // latest `max_count`.
  void RemoveUnheld(absl::Time time, size_t max_count) {
    const MutexLock lock(mutex_);  // Of must not return series that are being removed
    std::vector<std::pair<absl::Time, std::pair<std::string, int64_t>>> unheld;
    for (const auto& [version, entry] : entries_) {
      if (entry.holders == 0) unheld.emplace_back(entry.unheld_since, version);
    }
    std::sort(unheld.rbegin(), unheld.rend());  // the latest first
    for (size_t i = 0; i < unheld.size(); ++i) {
      if (i >= max_count || unheld[i].first < time) entries_.erase(unheld[i].second);
    }
  }

 private:
  struct Entry {
    int64_t holders = 0;
    absl::Time unheld_since;
    std::unique_ptr<VersionSeries> series;
  };

  void Release(const std::pair<std::string, int64_t>& key) {
    const MutexLock lock(mutex_);
    Entry& entry = entries_.find(key)->second;
    if (--entry.holders == 0) entry.unheld_since = clock_.Now();
  }

  const Clock& clock_;
  Mutex mutex_;
  std::map<std::pair<std::string, int64_t>, Entry> entries_ ABSL_GUARDED_BY(mutex_);  // by model and version
};

}  // namespace longshort::server
