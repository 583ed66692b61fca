#include "core/engine/batch_former.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace longshort {
namespace {

bool CanRunTogether(const ClassifierItem& a, const ClassifierItem& b) {
  if (a.index() != b.index()) return false;
  const auto* image = std::get_if<ImageItem>(&a);
  if (image == nullptr) return true;
  const auto& other = std::get<ImageItem>(b);
  return image->height == other.height && image->width == other.width;
}

}  // namespace

int64_t TokensOf(const ClassifierItem& item) {
  const auto* documents = std::get_if<TokenItem>(&item);
  if (documents == nullptr) return 0;
  int64_t tokens = 0;
  for (const std::vector<int32_t>& document : documents->documents) tokens += static_cast<int64_t>(document.size());
  return tokens;
}

ClassificationJobs BatchFormer::TakeBatch() {
  ClassificationJobs batch;
  int64_t tokens = 0;
  for (std::unique_ptr<ClassificationJob>& job : waiting_) {
    if (static_cast<int64_t>(batch.size()) == options_.max_batch_size) break;
    if (!batch.empty() && !CanRunTogether(batch.front()->item(), job->item())) continue;
    const int64_t more = TokensOf(job->item());
    if (!batch.empty() && tokens + more > options_.max_batch_tokens) break;
    tokens += more;
    batch.push_back(std::move(job));
  }
  waiting_.erase(std::remove(waiting_.begin(), waiting_.end(), nullptr), waiting_.end());
  return batch;
}

}  // namespace longshort
