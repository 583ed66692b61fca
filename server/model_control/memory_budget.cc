#include "server/model_control/memory_budget.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace longshort::server {
namespace {

std::string Mebibytes(int64_t bytes) { return absl::StrFormat("%.1f MiB", static_cast<double>(bytes) / (1 << 20)); }

}  // namespace

std::shared_ptr<Budget> MemoryBudget(int64_t bytes) {
  const int64_t capacity = bytes == 0 ? std::numeric_limits<int64_t>::max() : bytes;
  return std::make_shared<Budget>(capacity, Budget::Names{.holders = "the models", .unit = "bytes"});
}

absl::Status CheckModelFits(const Budget& memory, const std::string& model) {
  const int64_t needed = memory.held();
  if (needed <= memory.capacity()) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("model ", model, " does not fit: with it, weights, messages, prompts, images and caches may need ",
                   Mebibytes(needed), " of ", Mebibytes(memory.capacity())));
}

absl::Status CheckWeightsFit(const Budget& memory, int64_t weight_bytes) {
  const int64_t left = memory.left();
  if (weight_bytes <= left) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrFormat("it does not fit: its weights need %s, but only %s of %s are left beside other models, messages, "
                      "prompts and caches",
                      Mebibytes(weight_bytes), Mebibytes(left), Mebibytes(memory.capacity())));
}

absl::StatusOr<int64_t> TakeForCache(Budget::Share& share, const std::string& model, const CacheWish& wanted,
                                     int64_t usual) {
  constexpr char kOthers[] = " beside weights, messages, prompts, images and other caches";
  const Budget& memory = share.budget();
  const int64_t left = memory.left();
  // An explicit size may take all that is left. A default leaves half of it for later models, the next version of this
  // one included, and for everything else.
  const int64_t bytes = wanted.bytes == 0 ? std::min(usual, left / 2) : wanted.bytes;
  if (bytes == 0) {
    return absl::ResourceExhaustedError(absl::StrCat("no memory is left for the cache of model ", model, kOthers,
                                                     ": all ", Mebibytes(memory.capacity()), " are taken"));
  }
  if (bytes > left) {
    return absl::ResourceExhaustedError(absl::StrCat("the cache of model ", model, " needs ", bytes, " bytes (",
                                                     wanted.source, "), but only ", left, " bytes (", Mebibytes(left),
                                                     ") of ", Mebibytes(memory.capacity()), " are left", kOthers));
  }
  share.Add(bytes);
  return bytes;
}

}  // namespace longshort::server
