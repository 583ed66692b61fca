// How far a run over many files is.
#pragma once

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "clients/cpp/terminal.h"

namespace longshort {

// "[########------------]  512/1280 images  48.2/s  16 s left", 16 s of it estimated from the rate so far. With a total
// of 0, which is one that is not known, or one that was passed, "512 images  48.2/s".
// `before`: how many of `done` were done before `elapsed` began.
std::string ProgressText(int64_t done, int64_t total, const std::string& unit, absl::Duration elapsed,
                         int64_t before = 0);

// From construction to destruction one line at the terminal shows ProgressText; nothing remains of it. Writes nothing
// if there is only one thing to do. Where `terminal.error` is no terminal, such as a file, lines are written to it now
// and then instead, if the options say so.
//
// Thread: one at a time.
class ProgressBar final {
 public:
  struct Options {
    // As in "images".
    std::string unit;
    // 0 is not known.
    int64_t total = 0;
    // What an earlier run has done of it.
    int64_t before = 0;
    // Between two lines where there is no terminal, without the bar.
    absl::Duration line_interval = absl::InfiniteDuration();
    bool quiet = false;
  };

  ProgressBar(Terminal& terminal, Options options);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // One more is done. Draws, ten times a second at the most.
  void Advance();

  // Takes the line away, so that something else can be written to the terminal. Advance shows it again.
  void Hide();

 private:
  void Draw(absl::Time now);
  void WriteLine(absl::Time now);

  Terminal& terminal_;
  const Options options_;
  const absl::Time start_;
  int64_t done_;
  bool shown_ = false;
  bool has_lines_ = false;
  absl::Time drawn_;
};

}  // namespace longshort
