#include "base/file_watch.h"

namespace longshort {

void FileWatch::Look() {
  absl::StatusOr<std::string> text = options_.read();
  absl::Status status = text.status();
  std::string seen = text.ok() ? *std::move(text) : std::string(status.message());
  const bool is_complete = seen == seen_;
  seen_ = std::move(seen);
  // Content that comes back after an error is used again, so that its owner hears that all is well.
  if (!is_complete || (status.ok() && seen_ == in_use_ && error_.empty())) return;
  if (status.ok()) status = options_.use(seen_);
  if (status.ok()) {
    in_use_ = seen_;
    error_.clear();
  } else if (status.message() == error_) {
    return;
  } else {
    error_ = std::string(status.message());
  }
  options_.report(status);
}

}  // namespace longshort
