#include "models/families/language_model/transformer_ls.h"

#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "c10/core/InferenceMode.h"
#include "models/device/library.h"
#include "models/families/language_model/backends.h"

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

absl::Status TransformerLs::AllocateCache(const CachePages& pages) {
  pages_ = {};
  LS_RETURN_IF_ERROR(backend_->Allocate(pages));
  try {
    const c10::InferenceMode inference;
    LS_RETURN_IF_ERROR(backend_->PrepareSteps());
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
  const StepOutput output = backend_->RunStep(plan);
  return {.logits = output.logits,
          .counts = {.projected_rows = plan.rows() * info_.layers,
                     .compressed_rows = plan.full_chunks() * info_.chunk_rank * info_.layers,
                     .output_rows = plan.logit_rows.size,
                     .was_replayed = output.was_replayed}};
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

absl::StatusOr<PreparedDevice> PrepareDecoder(Decoder decoder, const WorkerDevice& device, const GpuBackends* gpus,
                                              const std::function<void()>& between) {
  if (device.kind == DeviceKind::kCpu) return PrepareForCpu(std::move(decoder), between);
  if (gpus != nullptr) return gpus->Prepare(std::move(decoder), device, between);
  return absl::UnimplementedError(absl::StrCat("no language model runs on ", DeviceName(device), " in this build"));
}

LanguageModelWeights::Place PlaceOf(LanguageModelInfo info, const WorkerDevice& device, PreparedDevice prepared) {
  static_cast<PageFormat&>(info) = prepared;
  return {.device = device,
          .info = info,
          .new_replica = [info, new_backend = std::move(prepared.new_backend)](
                             const WorkerDevice& worker) -> LanguageModelWeights::Replica {
            try {
              LS_ASSIGN_OR_RETURN(std::unique_ptr<LanguageModelBackend> backend, new_backend(worker));
              return std::make_unique<TransformerLs>(info, std::move(backend));
            } catch (const std::exception& error) {
              return LibraryError("to make a replica of the model", error);
            }
          }};
}

}  // namespace longshort::models
