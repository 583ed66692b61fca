// The served language model: runs slices from cache pages, on whatever device its backend is for.
//
// A step goes through the layers once, with all rows of all slices in each matrix product; only the backend's verbs
// look at slices one by one.
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

namespace longshort {

class TransformerLs final : public LanguageModel {
 public:
  // On the device whose backend has prepared the decoder (MakeBackend). `device`: what this one was made for. Throws
  // what LibTorch throws.
  TransformerLs(Decoder decoder, LanguageModelInfo info, const WorkerDevice& device,
                std::unique_ptr<LanguageModelBackend> backend);

  const LanguageModelInfo& info() const override { return info_; }
  absl::StatusOr<std::unique_ptr<LanguageModel>> Replicate(const WorkerDevice& device) const override;
  CachePages PageBytes() const override { return backend_->PageBytes(); }
  int64_t WorkspaceBytes() const override { return backend_->WorkspaceBytes(); }
  absl::Status AllocateCache(const CachePages& pages) override;
  absl::StatusOr<StepResult> Step(absl::Span<const Slice> slices) override;
  void Rest() override { backend_->Rest(); }
  absl::Status CopyPage(PageKind kind, PageId from, PageId to) override;
  std::string CacheLayout() const override { return backend_->CacheLayout(); }
  absl::StatusOr<std::string> ReadPage(PageKind kind, PageId page, const PageRows& rows) const override;
  absl::Status WritePage(PageKind kind, PageId page, std::string_view bytes) override;

 private:
  // The rows of zero memory, which every sequence begins with.
  void WriteZeroRows();
  // Errors: INVALID_ARGUMENT for a page that does not exist.
  absl::Status CheckPage(PageKind kind, PageId page) const;

  StepResult Run(const StepPlan& plan);
  // StepLayers.
  at::Tensor RunLayers(const StepPlan& plan, const at::Tensor& numbers);
  at::Tensor RunLayer(int64_t layer, const StepPlan& plan, const at::Tensor& hidden);

  Decoder decoder_;
  LanguageModelInfo info_;
  WorkerDevice device_;
  const StepLayers layers_ = [this](const StepPlan& plan, const at::Tensor& numbers) {
    return RunLayers(plan, numbers);
  };
  std::unique_ptr<LanguageModelBackend> backend_;
  CachePages pages_;
};

}  // namespace longshort
