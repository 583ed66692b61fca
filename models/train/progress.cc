#include "models/train/progress.h"

#include <unistd.h>

#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"

namespace longshort {

TrainingProgress::TrainingProgress(int64_t first_step, int64_t total_steps, int64_t tokens_per_step)
    : terminal_(isatty(STDERR_FILENO) == 1),
      first_step_(first_step),
      total_steps_(total_steps),
      tokens_per_step_(tokens_per_step),
      started_(absl::Now()) {}

void TrainingProgress::Report(int64_t steps_done, double bits, double gradient_norm, double learning_rate) {
  smoothed_bits_ = smoothed_bits_ == 0 ? bits : 0.98 * smoothed_bits_ + 0.02 * bits;
  const absl::Time now = absl::Now();
  const absl::Duration interval = terminal_ ? absl::Milliseconds(200) : absl::Seconds(30);
  if (now - last_shown_ < interval && steps_done != total_steps_) return;
  last_shown_ = now;

  const double per_step = absl::ToDoubleSeconds(now - started_) / static_cast<double>(steps_done - first_step_);
  const absl::Duration left = absl::Seconds(per_step * static_cast<double>(total_steps_ - steps_done));
  constexpr int kWidth = 24;
  const int filled = static_cast<int>(kWidth * steps_done / total_steps_);
  absl::FPrintF(
      stderr, "%s[%s%s] step %d/%d  loss %.4f nats  %.3f bits/byte  gradient %.2f  rate %.1e  %.0f tokens/s  %s left%s",
      terminal_ ? "\r\033[K" : "", std::string(filled, '#'), std::string(kWidth - filled, '.'), steps_done,
      total_steps_, smoothed_bits_ * 0.693147180559945, smoothed_bits_, gradient_norm, learning_rate,
      static_cast<double>(tokens_per_step_) / per_step, absl::FormatDuration(absl::Trunc(left, absl::Seconds(1))),
      terminal_ && steps_done != total_steps_ ? "" : "\n");
  std::fflush(stderr);
}

void TrainingProgress::ReportHeldOut(int64_t steps_done, double bits, int64_t tokens) {
  absl::FPrintF(stderr, "%sstep %d: held-out %.4f bits/byte over %d tokens\n", terminal_ ? "\r\033[K" : "", steps_done,
                bits, tokens);
}

}  // namespace longshort
