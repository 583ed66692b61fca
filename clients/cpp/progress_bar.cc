#include "clients/cpp/progress_bar.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"

namespace longshort {
namespace {

// ANSI: back to the start of the line, and clear it.
constexpr char kClearLine[] = "\r\033[K";

constexpr int kBarLength = 20;

// Often enough to look alive.
constexpr absl::Duration kInterval = absl::Milliseconds(100);

std::string RemainingTime(absl::Duration remaining) {
  const int64_t seconds = absl::ToInt64Seconds(absl::Ceil(remaining, absl::Seconds(1)));
  if (seconds < 60) return absl::StrCat(seconds, " s");
  if (seconds < 3600) return absl::StrFormat("%d min %02d s", seconds / 60, seconds % 60);
  return absl::StrFormat("%d h %02d min", seconds / 3600, seconds / 60 % 60);
}

}  // namespace

std::string ProgressText(int64_t done, int64_t total, const std::string& unit, absl::Duration elapsed) {
  const double seconds = absl::ToDoubleSeconds(elapsed);
  const double rate = done > 0 && seconds > 0 ? static_cast<double>(done) / seconds : 0;
  const std::string rate_text = rate > 0 ? absl::StrFormat("  %.1f/s", rate) : "";
  if (total == 0 || done > total) return absl::StrCat(done, " ", unit, rate_text);
  const auto filled = static_cast<size_t>(kBarLength * done / total);
  std::string text = absl::StrCat("[", std::string(filled, '#'), std::string(kBarLength - filled, '-'), "]  ", done,
                                  "/", total, " ", unit, rate_text);
  if (rate > 0)
    absl::StrAppend(&text, "  ", RemainingTime(absl::Seconds(static_cast<double>(total - done) / rate)), " left");
  return text;
}

ProgressBar::ProgressBar(Terminal& terminal, std::string unit, int64_t total)
    : terminal_(terminal), unit_(std::move(unit)), total_(total), start_(absl::Now()) {
  Draw();
}

void ProgressBar::Advance() {
  ++done_;
  if (!shown_ || absl::Now() - drawn_ >= kInterval) Draw();
}

void ProgressBar::Hide() {
  if (shown_) terminal_.error << kClearLine << std::flush;
  shown_ = false;
}

void ProgressBar::Draw() {
  if (!terminal_.error_is_terminal || total_ == 1) return;
  drawn_ = absl::Now();
  terminal_.error << kClearLine << ProgressText(done_, total_, unit_, drawn_ - start_) << std::flush;
  shown_ = true;
}

}  // namespace longshort
