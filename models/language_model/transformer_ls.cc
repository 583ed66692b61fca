#include "models/language_model/transformer_ls.h"

#include <exception>
#include <utility>

#include "ATen/Functions.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "c10/core/InferenceMode.h"
#include "models/language_model/backends.h"
#include "models/layers/library.h"

namespace longshort::models {
namespace {

const char* NameOf(PageKind kind) {
  switch (kind) {
    case PageKind::kWindow:
      return "window";
    case PageKind::kSegment:
      return "segment";
    case PageKind::kOpenChunk:
      break;
  }
  return "open chunk";
}

}  // namespace

TransformerLs::TransformerLs(Decoder decoder, LanguageModelInfo info, std::unique_ptr<LanguageModelBackend> backend)
    : decoder_(std::move(decoder)), info_(std::move(info)), backend_(std::move(backend)) {
  WriteZeroRows();
}

void TransformerLs::WriteZeroRows() {
  const c10::InferenceMode inference;
  const OneThread one_thread;
  for (int64_t index = 0; index < info_.layers; ++index) {
    const DecoderLayer& layer = decoder_.layers[index];
    const at::Tensor nothing = at::zeros({1, info_.model_width}, decoder_.embedding.options());
    const Projections zero = layer.Project(layer.AttentionInput(nothing));
    backend_->WriteZeroRows(index, layer.window_norm(zero.keys_values), layer.chunk_norm(zero.keys_values));
  }
}

absl::Status TransformerLs::AllocateCache(const CachePages& pages) {
  pages_ = {};
  LS_RETURN_IF_ERROR(backend_->Allocate(pages));
  try {
    const c10::InferenceMode inference;
    LS_RETURN_IF_ERROR(backend_->PrepareSteps(layers_));
  } catch (const std::exception& error) {
    return LibraryError("to prepare the model's steps", error);
  }
  pages_ = pages;
  return absl::OkStatus();
}

absl::StatusOr<StepResult> TransformerLs::Step(absl::Span<const Slice> slices) {
  if (slices.empty()) return absl::InvalidArgumentError("a step needs at least 1 slice");
  LS_RETURN_IF_ERROR(CheckSlices(slices, info_, pages_));
  try {
    return Run(PlanStep(slices, info_));
  } catch (const std::exception& error) {
    return LibraryError(absl::StrCat("in a step of ", slices.size(), " slices"), error);
  }
}

StepResult TransformerLs::Run(const StepPlan& plan) {
  const c10::InferenceMode inference;
  const StepOutput output = backend_->RunStep(plan, layers_);
  return {.logits = output.logits,
          .counts = {.projected_rows = plan.rows() * info_.layers,
                     .compressed_rows = plan.full_chunks() * info_.chunk_rank * info_.layers,
                     .output_rows = plan.logit_rows.size,
                     .was_replayed = output.was_replayed}};
}

at::Tensor TransformerLs::RunLayers(const StepPlan& plan, const at::Tensor& numbers) {
  const auto on_device = [&](const StepPlan::Array& array) { return numbers.narrow(0, array.first, array.size); };
  at::Tensor hidden = decoder_.Embed(on_device(plan.tokens));
  for (int64_t layer = 0; layer < info_.layers; ++layer) hidden = RunLayer(layer, plan, hidden);
  if (plan.logit_rows.size == 0) return {};
  return decoder_.Logits(plan.are_all_logits_wanted ? hidden : hidden.index_select(0, on_device(plan.logit_rows)));
}

at::Tensor TransformerLs::RunLayer(int64_t layer, const StepPlan& plan, const at::Tensor& hidden) {
  const DecoderLayer& weights = decoder_.layers[layer];
  const at::Tensor input = weights.AttentionInput(hidden);
  const Projections projections = weights.Project(input);
  LayerRows rows{.input = input,
                 .keys_values = projections.keys_values,
                 .projection_logits = projections.projection_logits,
                 .window = weights.window_norm(projections.keys_values),
                 .memory = {},
                 .segment = {}};
  if (plan.full_chunks() > 0) {
    const MixedChunks mixed = backend_->MixChunks(layer, rows);
    rows.memory = weights.chunk_norm(weights.KeysAndValues(mixed.inputs));
    rows.segment = weights.chunk_norm(mixed.keys_values);
  }
  backend_->WriteRows(layer, rows);
  return weights.Finish(input, backend_->Attend(layer, projections.queries));
}

absl::Status TransformerLs::CheckPage(PageKind kind, PageId page) const {
  const int64_t pages = pages_.Of(kind);
  if (page >= 0 && page < pages) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(NameOf(kind), " page ", page, " does not exist; the cache has ", pages));
}

absl::Status TransformerLs::CopyPage(PageKind kind, PageId from, PageId to) {
  if (from == kZeroPage) return absl::OkStatus();
  LS_RETURN_IF_ERROR(CheckPage(kind, from));
  LS_RETURN_IF_ERROR(CheckPage(kind, to));
  return backend_->CopyPage(kind, from, to);
}

absl::StatusOr<std::string> TransformerLs::ReadPage(PageKind kind, PageId page, const PageRows& rows) const {
  LS_RETURN_IF_ERROR(CheckPage(kind, page));
  const int64_t page_rows = kind == PageKind::kOpenChunk ? info_.chunk_size : info_.rows_per_page;
  if (rows.first < 0 || rows.first > rows.end || rows.end > page_rows) {
    return absl::InvalidArgumentError(
        absl::StrCat("rows ", rows.first, " to ", rows.end, " of a page that has ", page_rows));
  }
  return backend_->ReadPage(kind, page, rows);
}

absl::Status TransformerLs::WritePage(PageKind kind, PageId page, std::string_view bytes) {
  LS_RETURN_IF_ERROR(CheckPage(kind, page));
  const int64_t page_bytes = info_.page_bytes.Of(kind);
  if (static_cast<int64_t>(bytes.size()) != page_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("a page has ", page_bytes, " bytes, not ", bytes.size()));
  }
  return backend_->WritePage(kind, page, bytes);
}

absl::StatusOr<PreparedDevice> PrepareDecoder(Decoder& decoder, const WorkerDevice& device, const GpuBackends* gpus,
                                              const std::function<void()>& between) {
  if (device.kind == DeviceKind::kCpu) return PrepareForCpu(decoder, between);
  if (gpus != nullptr) return gpus->Prepare(decoder, device, between);
  return absl::UnimplementedError(absl::StrCat("no language model runs on ", DeviceName(device), " in this build"));
}

LanguageModelWeights::Place PlaceOf(Decoder decoder, LanguageModelInfo info, const WorkerDevice& device,
                                    PreparedDevice prepared) {
  static_cast<PageFormat&>(info) = prepared;
  return {.device = device,
          .info = info,
          .new_replica = [decoder = std::move(decoder), info, new_backend = std::move(prepared.new_backend)](
                             const WorkerDevice& worker) -> LanguageModelWeights::Replica {
            try {
              LS_ASSIGN_OR_RETURN(std::unique_ptr<LanguageModelBackend> backend, new_backend(worker));
              return std::make_unique<TransformerLs>(decoder, info, std::move(backend));
            } catch (const std::exception& error) {
              return LibraryError("to make a replica of the model", error);
            }
          }};
}

}  // namespace longshort::models
