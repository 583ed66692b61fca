#include "models/train/terminal.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <iterator>
#include <numbers>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"

namespace longshort::models {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM};
struct sigaction actions_before[std::size(kSignals)];
std::atomic<bool> has_received = false;
static_assert(std::atomic<bool>::is_always_lock_free, "the signal handler may run on any thread at any time");

// Ignored signals stay ignored, for example SIGINT in a script's background commands.
void Handle(void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;  // a signal does not interrupt a write
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    if (actions_before[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &action, nullptr);
  }
}

std::string RateText(double rate) {
  return rate < 1000 ? absl::StrFormat("%.4g", rate) : absl::StrFormat("%.0f", rate);
}

}  // namespace

TrainingProgress::TrainingProgress(int64_t first_step, int64_t total_steps, ProgressUnits units)
    : terminal_(isatty(STDERR_FILENO) == 1),
      first_step_(first_step),
      total_steps_(total_steps),
      units_(std::move(units)),
      started_(absl::Now()) {}

void TrainingProgress::Report(int64_t steps_done, double loss, double gradient_norm, double learning_rate) {
  smoothed_loss_ = smoothed_loss_ == 0 ? loss : 0.98 * smoothed_loss_ + 0.02 * loss;
  const absl::Time now = absl::Now();
  const absl::Duration interval = terminal_ ? absl::Milliseconds(200) : absl::Seconds(30);
  if (now - last_shown_ < interval && steps_done != total_steps_) return;
  last_shown_ = now;

  const double per_step = absl::ToDoubleSeconds(now - started_) / static_cast<double>(steps_done - first_step_);
  const absl::Duration left = absl::Seconds(per_step * static_cast<double>(total_steps_ - steps_done));
  constexpr int kWidth = 24;
  const int filled = static_cast<int>(kWidth * std::min(steps_done, total_steps_) / total_steps_);
  const std::string bits =
      units_.bits_per_byte ? absl::StrFormat("  %.3f bits/byte", smoothed_loss_ / std::numbers::ln2) : "";
  absl::FPrintF(stderr, "%s[%s%s] step %d/%d  loss %.4f %s%s  gradient %.2f  rate %.1e  %s %s/s  %s left%s",
                terminal_ ? "\r\033[K" : "", std::string(filled, '#'), std::string(kWidth - filled, '.'), steps_done,
                total_steps_, smoothed_loss_, units_.loss, bits, gradient_norm, learning_rate,
                RateText(static_cast<double>(units_.per_step) / per_step), units_.name,
                absl::FormatDuration(absl::Trunc(left, absl::Seconds(1))),
                terminal_ && steps_done != total_steps_ ? "" : "\n");
  std::fflush(stderr);
}

void TrainingProgress::ReportEvaluation(int64_t steps_done, const std::string& part, const std::string& figure) {
  absl::FPrintF(stderr, "%sstep %d: %s %s\n", terminal_ ? "\r\033[K" : "", steps_done, part, figure);
}

StopSignal::StopSignal() {
  has_received = false;
  for (size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], nullptr, &actions_before[i]);
  Handle([](int) {
    has_received = true;
    Handle(SIG_DFL);
  });
}

StopSignal::~StopSignal() {
  for (size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &actions_before[i], nullptr);
}

bool StopSignal::received() const { return has_received; }

}  // namespace longshort::models
