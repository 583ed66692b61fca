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

// "  48.2/s  16 s left"; the time only if the total is known.
std::string Pace(int64_t done, int64_t total, absl::Duration elapsed, int64_t before) {
  const double seconds = absl::ToDoubleSeconds(elapsed);
  if (done <= before || seconds <= 0) return "";
  const double rate = static_cast<double>(done - before) / seconds;
  std::string text = absl::StrFormat("  %.1f/s", rate);
  if (total != 0 && done <= total) {
    absl::StrAppend(&text, "  ", RemainingTime(absl::Seconds(static_cast<double>(total - done) / rate)), " left");
  }
  return text;
}

// "512/1280 images", or "512 images".
std::string Count(int64_t done, int64_t total, const std::string& unit) {
  return total == 0 || done > total ? absl::StrCat(done, " ", unit) : absl::StrCat(done, "/", total, " ", unit);
}

}  // namespace

std::string ProgressText(int64_t done, int64_t total, const std::string& unit, absl::Duration elapsed, int64_t before) {
  std::string text = absl::StrCat(Count(done, total, unit), Pace(done, total, elapsed, before));
  if (total == 0 || done > total) return text;
  const auto filled = static_cast<size_t>(kBarLength * done / total);
  return absl::StrCat("[", std::string(filled, '#'), std::string(kBarLength - filled, '-'), "]  ", text);
}

ProgressBar::ProgressBar(Terminal& terminal, Options options)
    : terminal_(terminal), options_(std::move(options)), start_(absl::Now()), done_(options_.before), drawn_(start_) {
  Draw(start_);
}

ProgressBar::~ProgressBar() {
  Hide();
  if (has_lines_) WriteLine(absl::Now());
}

void ProgressBar::Advance() {
  ++done_;
  const absl::Time now = absl::Now();
  if (!terminal_.error_is_terminal) {
    if (now - drawn_ >= options_.line_interval && !options_.quiet) WriteLine(now);
  } else if (!shown_ || now - drawn_ >= kInterval) {
    Draw(now);
  }
}

void ProgressBar::Hide() {
  if (shown_) terminal_.error << kClearLine << std::flush;
  shown_ = false;
}

void ProgressBar::Draw(absl::Time now) {
  if (!terminal_.error_is_terminal || options_.total == 1 || options_.quiet) return;
  drawn_ = now;
  terminal_.error << kClearLine << ProgressText(done_, options_.total, options_.unit, now - start_, options_.before)
                  << std::flush;
  shown_ = true;
}

void ProgressBar::WriteLine(absl::Time now) {
  drawn_ = now;
  has_lines_ = true;
  terminal_.error << "longshort: " << Count(done_, options_.total, options_.unit)
                  << Pace(done_, options_.total, now - start_, options_.before) << "\n"
                  << std::flush;
}

}  // namespace longshort
