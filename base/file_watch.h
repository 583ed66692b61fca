// Watches files for changes on its own thread. New content is used once two consecutive reads are equal, because a
// writer may still be writing the file, or another file of the same set.
//
// Invalid content changes nothing. Each poll tries it again, because it may become valid without a change (a
// certificate that is not valid yet).
//
// Thread: the owner calls Start and the destructor. The watch's thread calls Look; tests may call it without Start.
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
    // Returns a text that changes whenever the files change: their content, or their identity and times.
    std::function<absl::StatusOr<std::string>()> read;
    // Puts the content into use. `text` is the result of `read`.
    std::function<absl::Status(const std::string& text)> use;
    // Reports OK when new content is in use, or an error of `read` or `use`. A repeated error is reported once.
    std::function<void(const absl::Status& status)> report;
    absl::Duration interval = absl::Seconds(1);
  };

  // `in_use` is the result of `read` for the content that is in use now.
  FileWatch(Options options, std::string in_use) : options_(std::move(options)), in_use_(std::move(in_use)) {}

  // Errors: as Thread::Start.
  absl::Status Start(std::string_view purpose) {
    return thread_.Start(purpose, {.interval = options_.interval, .run = [this] { Look(); }});
  }

  // Polls the files once. The thread calls it every interval.
  void Look() {
    absl::StatusOr<std::string> text = options_.read();
    absl::Status status = text.status();
    std::string seen = text.ok() ? *std::move(text) : std::string(status.message());
    const bool is_complete = seen == seen_;
    seen_ = std::move(seen);
    // If the content in use returns after an error, it is used again, so that the recovery is reported.
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
  std::string seen_;   // result of the last read: the text, or the error message
  std::string error_;  // the last error reported since the last success
  TaskThread thread_;  // last: it uses the other members
};

}  // namespace longshort
