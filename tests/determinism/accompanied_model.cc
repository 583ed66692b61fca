#include "tests/determinism/accompanied_model.h"

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "tests/core/fakes/stream_pages.h"
#include "tests/determinism/library_bits.h"

namespace longshort {
namespace {

// Enough tokens to finish chunks of so many vectors.
int64_t TokensOfCompany(const models::LanguageModelInfo& info) {
  return (kEnoughRows + info.chunk_rank - 1) / info.chunk_rank * info.chunk_size;
}

// Pages of the engine come first, those of the company behind them.
class AccompaniedModel final : public models::LanguageModel {
 public:
  explicit AccompaniedModel(std::unique_ptr<models::LanguageModel> model) : model_(std::move(model)) {}

  const models::LanguageModelInfo& info() const override { return model_->info(); }
  absl::Status AllocateCache(const models::CachePages& pages) override {
    const models::CachePages more = core::StreamPages::Needed(info(), TokensOfCompany(info()));
    LS_RETURN_IF_ERROR(model_->AllocateCache(pages + more));
    core::FreePages free(more, pages);
    pages_ = std::make_unique<core::StreamPages>(info(), TokensOfCompany(info()), free);
    tokens_.assign(TokensOfCompany(info()), 1);
    company_ = {};
    company_.tokens = tokens_;
    company_.logit_rows = kEnoughRows;
    pages_->FillIn(company_);
    return absl::OkStatus();
  }
  absl::StatusOr<models::StepResult> Step(absl::Span<const models::Slice> slices) override {
    std::vector<models::Slice> all(slices.begin(), slices.end());
    all.push_back(company_);
    LS_ASSIGN_OR_RETURN(models::StepResult result, model_->Step(all));
    result.logits.remove_suffix(company_.logit_rows * info().vocabulary_size);
    return result;
  }
  absl::Status CopyPage(models::PageKind kind, models::PageId from, models::PageId to) override {
    return model_->CopyPage(kind, from, to);
  }
  absl::StatusOr<std::string> ReadPage(models::PageKind kind, models::PageId page,
                                       const models::PageRows& rows) const override {
    return model_->ReadPage(kind, page, rows);
  }
  absl::Status WritePage(models::PageKind kind, models::PageId page, std::string_view bytes) override {
    return model_->WritePage(kind, page, bytes);
  }

 private:
  const std::unique_ptr<models::LanguageModel> model_;
  // The same text from its first token on, in every step.
  std::vector<int32_t> tokens_;
  std::unique_ptr<core::StreamPages> pages_;
  models::Slice company_;
};

}  // namespace

models::LanguageModelWeights WithCompany(models::LanguageModelWeights weights) {
  for (models::LanguageModelWeights::Place& place : weights.places) {
    place.new_replica =
        [make = place.new_replica](const models::WorkerDevice& worker) -> models::LanguageModelWeights::Replica {
      LS_ASSIGN_OR_RETURN(std::unique_ptr<models::LanguageModel> replica, make(worker));
      return std::make_unique<AccompaniedModel>(std::move(replica));
    };
  }
  return weights;
}

}  // namespace longshort
