#include "server/lifecycle/cache_budget.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace longshort {
namespace {

constexpr int64_t kDefaultStreams = 16;

std::string Mebibytes(int64_t bytes) { return absl::StrFormat("%.1f MiB", static_cast<double>(bytes) / (1 << 20)); }

}  // namespace

absl::Status CacheBudget::Check(const std::string& model) const {
  const int64_t needed = set_aside_bytes_ + reserved_bytes_;
  if (memory_bytes_ == 0 || needed <= memory_bytes_) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("model ", model, " does not fit: with it, weights, messages, prompts, images and caches may need ",
                   Mebibytes(needed), " of ", Mebibytes(memory_bytes_)));
}

absl::StatusOr<int64_t> CacheBudget::Reserve(const std::string& model, int64_t bytes_per_stream, int64_t wanted) {
  int64_t streams = wanted == 0 ? kDefaultStreams : wanted;
  if (memory_bytes_ > 0) {
    // A number that was asked for may take all of the memory; a default leaves half for work in progress and everything
    // else.
    const int64_t free = memory_bytes_ - set_aside_bytes_;
    const int64_t usable = (wanted == 0 ? free / 2 : free) - reserved_bytes_;
    const int64_t most = std::max<int64_t>(0, usable) / bytes_per_stream;
    if (wanted == 0) streams = std::min(streams, most);
    if (streams > most || streams == 0) {
      return absl::ResourceExhaustedError(
          absl::StrCat("--max-streams is ", wanted, "; model ", model, " needs ", Mebibytes(bytes_per_stream),
                       " of cache per stream, and of ", Mebibytes(std::max<int64_t>(0, free)),
                       " that weights, prompts, messages and images leave ", Mebibytes(std::max<int64_t>(0, usable)),
                       " are left for it: at most ", most, " streams"));
    }
  }
  reserved_bytes_ += streams * bytes_per_stream;
  return streams;
}

}  // namespace longshort
