// Whose fault failed steps of the model are: the record of one request.
//
// A step may fail because of the machine, or of one of the requests in it. Those who were in it together are suspect:
// each runs alone until it has passed a step, so that whoever is the cause fails alone. A request that keeps failing
// alone, or whatever company it has, is hopeless. To pass a step in which it only reads again what it had read does not
// count.
//
// Thread: the one that runs the request.
#pragma once

#include <cstdint>

namespace longshort {

class WorkFailures final {
 public:
  // A step that the request was in failed. `alone`: nobody else was in it.
  void OnFailure(bool alone) {
    ++(alone ? failures_alone_ : failures_shared_);
    suspect_ |= !alone;
  }
  // One succeeded.
  void OnSuccess(bool alone) {
    suspect_ = false;
    failures_alone_ = 0;
    if (!alone) failures_shared_ = 0;
  }

  // Whether it is to run alone.
  bool suspect() const { return suspect_; }
  // Whether it is to be ended with the next failure, if that is like the last.
  bool on_last_try() const { return failures_alone_ == kMostAlone || failures_shared_ == kMostShared; }
  // Whether it is to be ended.
  bool hopeless() const { return failures_alone_ > kMostAlone || failures_shared_ > kMostShared; }

 private:
  // A request's step is tried three times: a failure may be the machine's.
  static constexpr int64_t kMostAlone = 2;
  // Those who fail together are innocent but for one; steps that fail only in company must come to an end all the same.
  static constexpr int64_t kMostShared = 8;

  // Since one last succeeded; those in company, since one in company did.
  int64_t failures_alone_ = 0;
  int64_t failures_shared_ = 0;
  bool suspect_ = false;
};

}  // namespace longshort
