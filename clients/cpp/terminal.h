// Where the program reads and writes: the real terminal, or strings in a test; how a person interrupts it, and how a
// long run shows that it is alive.
#pragma once

#include <atomic>
#include <csignal>
#include <cstdint>
#include <functional>
#include <istream>
#include <mutex>
#include <ostream>
#include <streambuf>
#include <string>

#include "absl/time/time.h"
#include "base/thread.h"

namespace longshort::client {

struct Terminal {
  std::istream& input;
  // Results only, so that they can be piped.
  std::ostream& output;
  // Errors, progress, summaries.
  std::ostream& error;
  // Whether a person types the input, and reads what goes to `error` and to `output`.
  bool input_is_terminal = false;
  bool error_is_terminal = false;
  bool output_is_terminal = false;
};

// A stream's buffer over a file or pipe: what is put into it is written when the stream is flushed. After the first
// error nothing more is written.
//
// Thread: one at a time.
class LineOutput final : public std::streambuf {
 public:
  // The descriptor stays the caller's.
  explicit LineOutput(int descriptor) : descriptor_(descriptor) {}

  // The system's error that ended the writing (ENOSPC, ...), or 0.
  int error() const { return error_; }

 protected:
  std::streamsize xsputn(const char* bytes, std::streamsize count) override;
  int_type overflow(int_type byte) override;
  int sync() override;

 private:
  const int descriptor_;
  std::string unwritten_;
  int error_ = 0;
};

// Ctrl-C and SIGTERM as a callback in an ordinary thread, where locks and gRPC may be used.
//
// Construct before any other thread exists: the signals are blocked in the constructing thread and in those that it
// starts. `on_interrupt` runs in the watcher's own thread, once for each signal.
class InterruptWatcher final {
 public:
  explicit InterruptWatcher(std::function<void()> on_interrupt);
  // Waits for a running callback. The signals stay blocked.
  ~InterruptWatcher();
  InterruptWatcher(const InterruptWatcher&) = delete;
  InterruptWatcher& operator=(const InterruptWatcher&) = delete;

 private:
  const std::function<void()> on_interrupt_;
  sigset_t signals_;
  std::atomic<bool> ending_ = false;
  Thread thread_;  // last: it uses the other members
};

// "[########------------]  512/1280 images  48.2/s  16 s left", 16 s of it estimated from the rate so far. With a total
// of 0, which is one that is not known, or one that was passed, "512 images  48.2/s". Before the first is done, the
// elapsed seconds stand in the place of the rate.
std::string ProgressText(int64_t done, int64_t total, const std::string& unit, absl::Duration elapsed);

// From construction to destruction one line at the terminal shows ProgressText, redrawn at least every half second;
// nothing remains of it. For a single thing it appears after half a second. Where `terminal.error` is no terminal, such
// as a file, a line is written at an interval instead, if the options say so.
//
// Thread: one at a time; a thread of its own redraws the line, except between Hide and Advance.
class ProgressBar final {
 public:
  struct Options {
    // As in "images".
    std::string unit;
    // 0 is not known.
    int64_t total = 0;
    // Between two lines where there is no terminal.
    absl::Duration line_interval = absl::InfiniteDuration();
    bool quiet = false;
  };

  ProgressBar(Terminal& terminal, Options options);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // One more is done.
  void Advance();

  // Takes the line away, so that something else can be written to the terminal. Advance shows it again.
  void Hide();

 private:
  // REQUIRES: mutex_ is held.
  void Draw(absl::Time now);
  void WriteLine(absl::Time now);

  Terminal& terminal_;
  const Options options_;
  const absl::Time start_;

  std::mutex mutex_;  // guards what follows
  int64_t done_ = 0;
  bool shown_ = false;
  bool hidden_ = false;  // by Hide
  bool has_lines_ = false;
  absl::Time drawn_;
  TaskThread redraw_;  // none where there is no terminal; last: it uses the other members
};

}  // namespace longshort::client
