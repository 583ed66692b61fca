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
int64_t TokensOfCompany(const LanguageModelInfo& info) {
  return (kEnoughRows + info.chunk_rank - 1) / info.chunk_rank * info.chunk_size;
}

// Pages of the engine come first, those of the company behind them.
class AccompaniedModel final : public LanguageModel {
 public:
  explicit AccompaniedModel(std::unique_ptr<LanguageModel> model) : model_(std::move(model)) {}

  const LanguageModelInfo& info() const override { return model_->info(); }
  absl::Status AllocateCache(const CachePages& pages) override {
    const CachePages more = PagesForRings(info(), TokensOfCompany(info()));
    LS_RETURN_IF_ERROR(model_->AllocateCache(
        {pages.window + more.window, pages.segment + more.segment, pages.open_chunk + more.open_chunk}));
    return MakeCompany(pages);
  }
  absl::StatusOr<StepResult> Step(absl::Span<const Slice> slices) override {
    std::vector<Slice> all(slices.begin(), slices.end());
    all.push_back(company_);
    LS_ASSIGN_OR_RETURN(StepResult result, model_->Step(all));
    result.logits.remove_suffix(company_.logit_rows * info().vocabulary_size);
    return result;
  }
  absl::Status CopyPage(PageKind kind, PageId from, PageId to) override { return model_->CopyPage(kind, from, to); }
  absl::StatusOr<std::string> ReadPage(PageKind kind, PageId page, const PageRows& rows) const override {
    return model_->ReadPage(kind, page, rows);
  }
  absl::Status WritePage(PageKind kind, PageId page, std::string_view bytes) override {
    return model_->WritePage(kind, page, bytes);
  }

 private:
  // The same text from its first token on, in every step. `first`: the numbers of its first pages.
  absl::Status MakeCompany(const CachePages& first) {
    tokens_.assign(TokensOfCompany(info()), 1);
    company_ = {};
    company_.tokens = tokens_;
    company_.logit_rows = kEnoughRows;
    RingPools pools(PagesForRings(info(), TokensOfCompany(info())));
    LS_ASSIGN_OR_RETURN(RingPages pages, RingPages::Acquire(pools, info(), TokensOfCompany(info())));
    pages.FillIn(company_);
    const auto own = [](PageRange& range, std::vector<PageId>& ids, int64_t before) {
      ids.assign(range.ids.begin(), range.ids.end());
      for (PageId& id : ids) id = id == kZeroPage ? id : id + static_cast<PageId>(before);
      range.ids = ids;
    };
    own(company_.window_pages, window_, first.window);
    own(company_.memory_pages, memory_, first.segment);
    own(company_.segment_pages, segment_, first.segment);
    company_.open_chunk += static_cast<PageId>(first.open_chunk);
    return absl::OkStatus();
  }

  const std::unique_ptr<LanguageModel> model_;
  std::vector<int32_t> tokens_;
  std::vector<PageId> window_, memory_, segment_;
  Slice company_;
};

}  // namespace

LanguageModelWeights WithCompany(LanguageModelWeights weights) {
  for (LanguageModelWeights::Place& place : weights.places) {
    place.new_replica = [make = place.new_replica](const WorkerDevice& worker) -> LanguageModelWeights::Replica {
      LS_ASSIGN_OR_RETURN(std::unique_ptr<LanguageModel> replica, make(worker));
      return std::make_unique<AccompaniedModel>(std::move(replica));
    };
  }
  return weights;
}

}  // namespace longshort
