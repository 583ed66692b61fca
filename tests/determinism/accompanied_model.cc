#include "tests/determinism/accompanied_model.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "tests/determinism/library_bits.h"
#include "tests/rings/ring_pages.h"

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
    const models::CachePages more = PagesForRings(info(), TokensOfCompany(info()));
    LS_RETURN_IF_ERROR(model_->AllocateCache(
        {pages.window + more.window, pages.segment + more.segment, pages.open_chunk + more.open_chunk}));
    return MakeCompany(pages);
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
  // The same text from its first token on, in every step. `first`: the numbers of its first pages.
  absl::Status MakeCompany(const models::CachePages& first) {
    tokens_.assign(TokensOfCompany(info()), 1);
    company_ = {};
    company_.tokens = tokens_;
    company_.logit_rows = kEnoughRows;
    RingPools pools(PagesForRings(info(), TokensOfCompany(info())));
    LS_ASSIGN_OR_RETURN(RingPages pages, RingPages::Acquire(pools, info(), TokensOfCompany(info())));
    pages.FillIn(company_);
    const auto own = [](models::PageRange& range, std::vector<models::PageId>& ids, int64_t before) {
      ids.assign(range.ids.begin(), range.ids.end());
      for (models::PageId& id : ids) id = id == models::kZeroPage ? id : id + static_cast<models::PageId>(before);
      range.ids = ids;
    };
    own(company_.window_pages, window_, first.window);
    own(company_.memory_pages, memory_, first.segment);
    own(company_.segment_pages, segment_, first.segment);
    company_.open_chunk += static_cast<models::PageId>(first.open_chunk);
    return absl::OkStatus();
  }

  const std::unique_ptr<models::LanguageModel> model_;
  std::vector<int32_t> tokens_;
  std::vector<models::PageId> window_, memory_, segment_;
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
