// Watches files for changes on its own thread. New content is used once two consecutive reads are equal, because a
// writer may still be writing the file, or another file of the same set.
//
// Invalid content changes nothing. Each poll tries it again, because it may become valid without a change (a
// certificate that is not valid yet).
//
// Thread: Start and the destructor by the owner; Look by the watch's thread, or by tests that did not call Start.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/thread.h"

namespace longshort {

class FileWatch final {
 public:
  struct Options {
    // A text that differs whenever the files do: their content, or their identity and times.
    std::function<absl::StatusOr<std::string>()> read;
    // Puts the content into use, given what `read` returned.
    std::function<absl::Status(const std::string& text)> use;
    // OK: new content is in use. An error of `read` or `use`: once, until another one or success.
    std::function<void(const absl::Status& status)> report;
    absl::Duration interval = absl::Seconds(1);
  };

  // `in_use`: what `read` returned for the content in use, before that was used.
  FileWatch(Options options, std::string in_use) : options_(std::move(options)), in_use_(std::move(in_use)) {}

  // Errors: as Thread::Start.
  absl::Status Start(std::string_view purpose) {
    return thread_.Start(purpose, {.interval = options_.interval, .run = [this] { Look(); }});
  }

  // What the thread does every interval.
  void Look() {
    absl::StatusOr<std::string> text = options_.read();
    absl::Status status = text.status();
    std::string seen = text.ok() ? *std::move(text) : std::string(status.message());
    const bool is_complete = seen == seen_;
    seen_ = std::move(seen);
    // Content that comes back after an error is used again, so that its owner learns of the recovery.
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

 private:
  const Options options_;
  std::string in_use_;
  std::string seen_;   // at the last look: the text, or why there was none
  std::string error_;  // the last that was reported, since the last success
  TaskThread thread_;  // last: it uses the other members
};

}  // namespace longshort
