// How far a run over many files is.
#pragma once

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "clients/cpp/terminal.h"

namespace longshort {

// "[########------------]  512/1280 images  48.2/s  16 s left", 16 s of it estimated from the rate so far. With a total
// of 0, which is one that is not known, or one that was passed, "512 images  48.2/s".
std::string ProgressText(int64_t done, int64_t total, const std::string& unit, absl::Duration elapsed);

// From construction to destruction one line at the terminal shows ProgressText; nothing remains of it. Writes nothing
// if `terminal.error` is no terminal, or if there is only one thing to do.
//
// Thread: one at a time.
class ProgressBar final {
 public:
  ProgressBar(Terminal& terminal, std::string unit, int64_t total);
  ~ProgressBar() { Hide(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // One more is done. Draws, ten times a second at the most.
  void Advance();

  // Takes the line away, so that something else can be written to the terminal. Advance shows it again.
  void Hide();

 private:
  void Draw();

  Terminal& terminal_;
  const std::string unit_;
  const int64_t total_;
  const absl::Time start_;
  int64_t done_ = 0;
  bool shown_ = false;
  absl::Time drawn_ = absl::InfinitePast();
};

}  // namespace longshort
