#include "server/model_control/cache_budget.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace longshort {
namespace {

std::string Mebibytes(int64_t bytes) { return absl::StrFormat("%.1f MiB", static_cast<double>(bytes) / (1 << 20)); }

}  // namespace

void CacheBudget::SetAside(int64_t bytes) {
  const std::lock_guard lock(mutex_);
  set_aside_bytes_ += bytes;
}

absl::Status CacheBudget::Check(const std::string& model) const {
  const std::lock_guard lock(mutex_);
  const int64_t needed = set_aside_bytes_ + reserved_bytes_;
  if (memory_bytes_ == 0 || needed <= memory_bytes_) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("model ", model, " does not fit: with it, weights, messages, prompts, images and caches may need ",
                   Mebibytes(needed), " of ", Mebibytes(memory_bytes_)));
}

absl::Status CacheBudget::CheckRoom(int64_t weight_bytes) const {
  const std::lock_guard lock(mutex_);
  const int64_t left = std::max<int64_t>(0, memory_bytes_ - set_aside_bytes_ - reserved_bytes_);
  if (memory_bytes_ == 0 || weight_bytes <= left) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrFormat("it does not fit: its weights take %s, and of %s, which other models, messages, prompts and "
                      "caches share, %s are left",
                      Mebibytes(weight_bytes), Mebibytes(memory_bytes_), Mebibytes(left)));
}

absl::StatusOr<int64_t> CacheBudget::Reserve(const std::string& model, int64_t wanted, int64_t usual) {
  const std::lock_guard lock(mutex_);
  int64_t bytes = wanted == 0 ? usual : wanted;
  if (memory_bytes_ > 0) {
    // A number that was asked for may take all that is left; a default leaves half of it for the models that come
    // later, the next version of this one among them, and for everything else.
    const int64_t free = memory_bytes_ - set_aside_bytes_;
    const int64_t left = std::max<int64_t>(0, free - reserved_bytes_);
    const int64_t most = wanted == 0 ? left / 2 : left;
    if (wanted == 0) bytes = std::min(bytes, most);
    if (bytes > most || bytes == 0) {
      return absl::ResourceExhaustedError(
          absl::StrCat("--cache-bytes is ", wanted, "; of ", Mebibytes(std::max<int64_t>(0, free)),
                       " that weights, prompts, messages and images leave, ", most, " bytes (", Mebibytes(most),
                       ") are left for the cache of model ", model));
    }
  }
  reserved_bytes_ += bytes;
  return bytes;
}

void CacheBudget::GiveBack(int64_t set_aside_bytes, int64_t reserved_bytes) {
  const std::lock_guard lock(mutex_);
  set_aside_bytes_ -= set_aside_bytes;
  reserved_bytes_ -= reserved_bytes;
}

void BudgetShare::SetAside(int64_t bytes) {
  budget_->SetAside(bytes);
  set_aside_bytes_ += bytes;
}

absl::StatusOr<int64_t> BudgetShare::Reserve(const std::string& model, int64_t wanted, int64_t usual) {
  absl::StatusOr<int64_t> bytes = budget_->Reserve(model, wanted, usual);
  if (bytes.ok()) reserved_bytes_ += *bytes;
  return bytes;
}

}  // namespace longshort
