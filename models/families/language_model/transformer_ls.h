// The served language model: runs slices on cache pages, on its backend's device. A step runs the layers once, with
// all rows of all slices in each matrix product.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "models/families/language_model/backend.h"
#include "models/families/language_model/step_plan.h"
#include "models/load_options.h"
#include "models/model.h"
#include "models/tokenizer/tokenizer.h"
#include "models/weights/model_directory.h"

namespace longshort::models {

class TransformerLs final : public LanguageModel {
 public:
  TransformerLs(LanguageModelInfo info, std::unique_ptr<LanguageModelBackend> backend)
      : info_(std::move(info)), backend_(std::move(backend)) {}

  const LanguageModelInfo& info() const override { return info_; }
  absl::Status AllocateCache(const CachePages& pages) override;
  absl::StatusOr<StepResult> Step(absl::Span<const Slice> slices) override;
  absl::Status BeginStep(absl::Span<const Slice> slices) override;
  absl::StatusOr<StepResult> FinishStep() override;
  int64_t steps_at_once() const override { return backend_->steps_at_once(); }
  void Rest() override { backend_->Rest(); }
  absl::Status CopyPage(PageKind kind, PageId from, PageId to) override;
  absl::StatusOr<std::string> ReadPage(PageKind kind, PageId page, const PageRows& rows) const override;
  absl::Status WritePage(PageKind kind, PageId page, std::string_view bytes) override;

 private:
  // Errors: INVALID_ARGUMENT for a page that does not exist.
  absl::Status CheckPage(PageKind kind, PageId page) const;

  LanguageModelInfo info_;
  std::unique_ptr<LanguageModelBackend> backend_;
  CachePages pages_;
  std::deque<StepCounts> begun_;  // of the steps that have begun
};

// Returns the weights on the device that the decoder was prepared for (PrepareDecoder).
//   info  without the fields of PageFormat
LanguageModelWeights::Place PlaceOf(LanguageModelInfo info, const WorkerDevice& device, PreparedDevice prepared);

// Loads the weights from config.json and model.safetensors of a model directory.
// Errors: those of OpenModelDirectory, ParseLanguageModelConfig, CheckTensors and TensorReader; INVALID_ARGUMENT for
// another precision; those of PrepareDecoder; INTERNAL if the library fails.
absl::StatusOr<LanguageModelWeights> LoadLanguageModel(const std::string& directory, const LoadOptions& options);
absl::StatusOr<LanguageModelWeights> LoadLanguageModel(const ModelDirectory& directory, const LoadOptions& options);

// Loads the tokenizer of a model directory; null if config.json's tokenizer is "none".
// Errors: INVALID_ARGUMENT if vocabulary.txt is missing or broken.
absl::StatusOr<std::unique_ptr<Tokenizer>> LoadTokenizer(const ModelDirectory& directory);

}  // namespace longshort::models
