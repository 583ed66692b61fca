// The served language model: runs slices on cache pages, on its backend's device.
//
// A step runs the layers once, with all rows of all slices in each matrix product. Only the backend's methods process
// slices one by one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "ATen/core/Tensor.h"
#include "models/language_model/backend.h"
#include "models/language_model/decoder.h"
#include "models/language_model/step_plan.h"
#include "models/model.h"

namespace longshort::models {

class TransformerLs final : public LanguageModel {
 public:
  // Runs on the device that the decoder was prepared for. Throws what LibTorch throws.
  TransformerLs(Decoder decoder, LanguageModelInfo info, std::unique_ptr<LanguageModelBackend> backend);

  const LanguageModelInfo& info() const override { return info_; }
  absl::Status AllocateCache(const CachePages& pages) override;
  absl::StatusOr<StepResult> Step(absl::Span<const Slice> slices) override;
  void Rest() override { backend_->Rest(); }
  absl::Status CopyPage(PageKind kind, PageId from, PageId to) override;
  absl::StatusOr<std::string> ReadPage(PageKind kind, PageId page, const PageRows& rows) const override;
  absl::Status WritePage(PageKind kind, PageId page, std::string_view bytes) override;

 private:
  // Writes the rows of zero memory, with which every sequence begins.
  void WriteZeroRows();
  // Errors: INVALID_ARGUMENT for a page that does not exist.
  absl::Status CheckPage(PageKind kind, PageId page) const;

  StepResult Run(const StepPlan& plan);
  // Implements StepLayers.
  at::Tensor RunLayers(const StepPlan& plan, const at::Tensor& numbers);
  at::Tensor RunLayer(int64_t layer, const StepPlan& plan, const at::Tensor& hidden);

  Decoder decoder_;
  LanguageModelInfo info_;
  const StepLayers layers_ = [this](const StepPlan& plan, const at::Tensor& numbers) {
    return RunLayers(plan, numbers);
  };
  std::unique_ptr<LanguageModelBackend> backend_;
  CachePages pages_;
};

// Returns the weights on the device that the decoder was prepared for (PrepareDecoder).
//   info  without the fields of PageFormat
LanguageModelWeights::Place PlaceOf(Decoder decoder, LanguageModelInfo info, const WorkerDevice& device,
                                    PreparedDevice prepared);

}  // namespace longshort::models
