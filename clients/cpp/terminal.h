// The terminal: input and output streams (strings in tests), Ctrl-C, and the progress bar.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <istream>
#include <ostream>
#include <streambuf>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/thread.h"

namespace longshort::client {

struct Terminal {
  std::istream& input;
  // Receives only results, so that they can be piped.
  std::ostream& output;
  // Receives errors, progress and summaries.
  std::ostream& error;
  // Whether each stream is a terminal.
  bool input_is_terminal = false;
  bool error_is_terminal = false;
  bool output_is_terminal = false;
  // Ends `input` for a thread that waits for it.
  std::function<void()> stop_input = [] {};
};

// A stream buffer over a file descriptor, whose input another thread can end.
class StoppableInput final : public std::streambuf {
 public:
  // Does not own the descriptor.
  explicit StoppableInput(int descriptor) : descriptor_(descriptor), stopped_(eventfd(0, EFD_CLOEXEC)) {}
  ~StoppableInput() override { close(stopped_); }
  StoppableInput(const StoppableInput&) = delete;
  StoppableInput& operator=(const StoppableInput&) = delete;

  // Makes a read that waits, and each later one, find the end. Thread-safe.
  void Stop() { eventfd_write(stopped_, 1); }

 protected:
  // Throws std::system_error, which makes the stream bad, if the descriptor cannot be read.
  int_type underflow() override;

 private:
  const int descriptor_;
  const int stopped_;
  std::array<char, size_t{1} << 16> block_;
};

// A stream buffer over a file descriptor, written when the stream is flushed. Discards all output after the first
// error.
//
// Not thread-safe.
class LineOutput final : public std::streambuf {
 public:
  // Does not own the descriptor.
  explicit LineOutput(int descriptor) : descriptor_(descriptor) {}

  // Returns the errno of the first error (ENOSPC, ...), or 0.
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

// Calls back on Ctrl-C and SIGTERM in an ordinary thread, where locks and gRPC may be used.
//
// Construct it before any other thread exists: it blocks the signals in this thread and in those started later.
// `on_interrupt` runs in the watcher's thread, once for each signal.
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

// Returns "[########------------]  512/1280 images  48.2/s  16 s left", estimated from the average rate, or "512 images
// 48.2/s" if `total` is 0 (unknown) or exceeded. Before the first item is done, the text has the elapsed seconds
// instead of the rate.
std::string ProgressText(int64_t done, int64_t total, const std::string& unit, absl::Duration elapsed);

// Shows ProgressText as a line of the terminal, redrawn at least every half second, and erases it in the end. If the
// total is 1, it appears after half a second. Nothing is shown if `terminal.error` is not a terminal.
//
// Not thread-safe. A background thread redraws the line, except between Hide and Advance.
class ProgressBar final {
 public:
  struct Options {
    // Plural name of the items, such as "images".
    std::string unit;
    // Number of items; 0 if unknown.
    int64_t total = 0;
    bool quiet = false;
  };

  // `terminal` and `clock` must outlive it.
  ProgressBar(Terminal& terminal, Options options, const Clock& clock = SystemClock());
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // Counts one item as done.
  void Advance();

  // Erases the line, so that other output can be written. Advance shows it again.
  void Hide();

 private:
  void Draw(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Terminal& terminal_;
  const Options options_;
  const bool is_visible_;
  const Clock& clock_;
  const absl::Time start_;

  Mutex mutex_;
  int64_t done_ ABSL_GUARDED_BY(mutex_) = 0;
  bool shown_ ABSL_GUARDED_BY(mutex_) = false;
  bool hidden_ ABSL_GUARDED_BY(mutex_) = false;  // by Hide
  absl::Time drawn_ ABSL_GUARDED_BY(mutex_);
  TaskThread redraw_;  // last: it uses the other members
};

}  // namespace longshort::client
