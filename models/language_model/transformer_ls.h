// The served language model on the CPU: runs slices from cache pages.
//
// A step goes through the layers once, with all rows of all slices in each matrix product; only attention and the
// mixing of finished chunks look at slices one by one, in the kernels of models/kernels/cpu.
//
// Element is what cache pages and position tables hold: float with --precision=fp32, cpu::BFloat16 with bf16.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "ATen/core/Tensor.h"
#include "models/language_model/cache_storage.h"
#include "models/language_model/decoder.h"
#include "models/language_model/distance_tables.h"
#include "models/language_model/step_plan.h"
#include "models/layers/timed_steps.h"
#include "models/model.h"

namespace longshort {

template <typename Element>
class TransformerLs final : public LanguageModel {
 public:
  // `threads` as in LanguageModelOptions. Throws what LibTorch throws.
  TransformerLs(Decoder decoder, LanguageModelInfo info, int threads);

  const LanguageModelInfo& info() const override { return info_; }
  absl::StatusOr<std::unique_ptr<LanguageModel>> Replicate(int threads) const override;
  CachePages PageBytes() const override;
  absl::Status AllocateCache(const CachePages& pages) override;
  absl::StatusOr<StepResult> Step(absl::Span<const Slice> slices) override;
  void Rest() override;
  absl::Status CopyPage(PageKind kind, PageId from, PageId to) override;
  std::string CacheLayout() const override;
  absl::StatusOr<std::string> ReadPage(PageKind kind, PageId page, const PageRows& rows) const override;
  absl::Status WritePage(PageKind kind, PageId page, std::string_view bytes) override;

 private:
  // Shares the weights of `other`, and what is computed from them alone.
  TransformerLs(const TransformerLs& other, int threads);
  // The rows of zero memory, which every sequence begins with.
  void WriteZeroRows();

  // Compressed keys and values of the chunks that a step finishes, after DualLN; each [finished * R, 2, d].
  struct CompressedRows {
    at::Tensor memory;   // mix, then project: for later segments
    at::Tensor segment;  // project, then mix: for the chunk's own segment
  };
  // What a layer has of the new rows when attention begins.
  struct NewRows {
    at::Tensor queries, attended;  // [rows, d]
    at::Tensor window;             // keys and values, [rows, 2, d]
    CompressedRows compressed;
  };
  struct HeadRange {
    int64_t first = 0;
    int64_t count = 0;
  };

  // The bytes of a page. Errors: INVALID_ARGUMENT for one that does not exist.
  absl::StatusOr<absl::Span<char>> PageMemory(PageKind kind, PageId page) const;
  // Keys that a query meets at the most.
  int64_t VisibleKeys() const;
  StepResult Run(absl::Span<const Slice> slices, const StepPlan& plan);
  at::Tensor RunLayer(int64_t layer, absl::Span<const Slice> slices, const StepPlan& plan, const at::Tensor& hidden,
                      StepCounts& counts);
  CompressedRows FinishChunks(int64_t layer, absl::Span<const Slice> slices, const StepPlan& plan,
                              const at::Tensor& input, const Projections& projections);
  void KeepOpenRows(int64_t layer, absl::Span<const Slice> slices, const StepPlan& plan, const at::Tensor& input,
                    const Projections& projections);
  void WriteRun(int64_t layer, const Slice& slice, const StepPlan& plan, const QueryRun& run, const NewRows& rows);
  // For these heads, side by side in a page; `scratch` has room for them.
  void AttendRun(int64_t layer, const HeadRange& heads, const Slice& slice, const QueryRun& run, const NewRows& rows,
                 float* scratch);
  cpu::KeyPages<Element> HeadPages(const PageStorage<Element>& storage, const PageRange& range, int64_t layer,
                                   int64_t head) const;
  at::Tensor LogitRows(absl::Span<const Slice> slices, const StepPlan& plan, const at::Tensor& hidden) const;

  Decoder decoder_;
  LanguageModelInfo info_;
  int threads_;
  TimedSteps steps_;
  DistanceTables<Element> distances_;
  PageLayout layout_;
  PageStorage<Element> window_pages_, segment_pages_;
  OpenChunkStorage open_chunks_;
  at::Tensor logits_;  // of the last step
};

}  // namespace longshort
