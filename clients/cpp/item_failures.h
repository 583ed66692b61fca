// What failed in a run over many files: told beside each file's name, counted, and in the end an exit code.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "clients/cpp/exit_code.h"
#include "clients/cpp/terminal.h"
#include "longshort/v1/types.pb.h"

namespace longshort {

// An error of this side as the server would have sent it. NOT_FOUND, which the server never sends of an item, stands
// for a file that cannot be read.
v1::ItemError MakeItemError(const absl::Status& status);
absl::Status StatusOf(const v1::ItemError& error);

class ItemFailures final {
 public:
  // With `json`, each failure is an object in the output instead of a line in `terminal.error`. `unit` as in "images".
  ItemFailures(Terminal& terminal, bool json, std::string unit);

  // Counts what was told before.
  void Count(const absl::Status& failure);
  // Counts it, and tells of it beside the name.
  void Add(const std::string& name, const v1::ItemError& error);

  int64_t count() const { return refused_ + unavailable_ + other_ + unread_; }

  // Tells how many of `total` failed, if any did. Returns kRefused if one was refused; otherwise kUnavailable, kOther
  // or kUsage (it could not be read), in this order; kOk if none failed.
  ExitCode Summarize(int64_t total) const;

 private:
  Terminal& terminal_;
  const bool json_;
  const std::string unit_;
  int64_t refused_ = 0;
  int64_t unavailable_ = 0;
  int64_t other_ = 0;
  int64_t unread_ = 0;
};

}  // namespace longshort
