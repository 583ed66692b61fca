#include "models/families/language_model/transformer_ls.h"

#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "c10/core/InferenceMode.h"
#include "models/device/library.h"
#include "models/families/family_loader.h"
#include "models/families/language_model/backend.h"
#include "models/families/language_model/language_model_config.h"
#include "models/ops/layers/linear.h"
#include "models/tokenizer/tokenizers.h"

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
  LS_RETURN_IF_ERROR(BeginStep(slices));
  return FinishStep();
}

absl::Status TransformerLs::BeginStep(absl::Span<const Slice> slices) {
  if (slices.empty()) return absl::InvalidArgumentError("a step needs at least 1 slice");
  LS_RETURN_IF_ERROR(CheckSlices(slices, info_, pages_));
  try {
    const c10::InferenceMode inference;
    const StepPlan plan = PlanStep(slices, info_);
    backend_->BeginStep(plan);
    begun_.push_back({.projected_rows = plan.rows() * info_.layers,
                      .compressed_rows = plan.full_chunks() * info_.chunk_rank * info_.layers,
                      .output_rows = plan.logit_rows.size});
  } catch (const std::exception& error) {
    return LibraryError(absl::StrCat("in a step of ", slices.size(), " slices"), error);
  }
  return absl::OkStatus();
}

absl::StatusOr<StepResult> TransformerLs::FinishStep() {
  StepResult result = {.logits = {}, .counts = begun_.front()};
  begun_.pop_front();
  try {
    const c10::InferenceMode inference;
    const StepOutput output = backend_->FinishStep();
    result.logits = output.logits;
    result.counts.was_replayed = output.was_replayed;
    result.device_time = output.device_time;
  } catch (const std::exception& error) {
    return LibraryError("to finish a step", error);
  }
  return result;
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

namespace {

LanguageModelInfo MakeInfo(const LanguageModelConfig& config, const ModelDirectory& directory,
                           const std::string& precision) {
  LanguageModelInfo info = {config, {}};
  info.parameters = CountParameters(LanguageModelTensors(config));
  info.precision = precision;
  info.fingerprint = directory.fingerprint;
  return info;
}

absl::StatusOr<at::ScalarType> ProductType(const LoadOptions& options) {
  if (options.precision == "fp32") return at::kFloat;
  if (options.precision == "bf16") return at::kBFloat16;
  if (options.precision != "int8") {
    return absl::InvalidArgumentError(
        absl::StrCat("precision is '", options.precision, "'; it must be fp32, bf16 or int8"));
  }
  for (const WorkerDevice& device : options.devices) {
    if (device.kind == DeviceKind::kCpu) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("precision int8 is for the CPU, and a worker is on ", DeviceName(device), "; use bf16"));
  }
  return at::kChar;
}

}  // namespace

absl::StatusOr<LanguageModelWeights> LoadLanguageModel(const std::string& directory, const LoadOptions& options) {
  LS_ASSIGN_OR_RETURN(const ModelDirectory opened, OpenModelDirectory(directory));
  return LoadLanguageModel(opened, options);
}

absl::StatusOr<LanguageModelWeights> LoadLanguageModel(const ModelDirectory& directory, const LoadOptions& options) {
  LS_ASSIGN_OR_RETURN(const at::ScalarType product_type, ProductType(options));
  LS_ASSIGN_OR_RETURN(const LanguageModelConfig config,
                      ParseLanguageModelConfig(directory.config_text, directory.config_path()));
  LS_RETURN_IF_ERROR(CheckTensors(directory.weights, LanguageModelTensors(config)));
  const LanguageModelInfo info = MakeInfo(config, directory, options.precision);
  TensorReader reader(directory.weights);
  try {
    const c10::InferenceMode inference;
    const OneThread one_thread;
    Decoder decoder = MakeDecoder(config, product_type, [&](const std::string& name) { return reader.Read(name); });
    LS_RETURN_IF_ERROR(reader.Finish());
    const std::vector<WorkerDevice> devices = options.DevicesOrCpu();
    LanguageModelWeights weights;
    const auto place = [&](const WorkerDevice& device, Decoder here) -> absl::Status {
      LS_ASSIGN_OR_RETURN(PreparedDevice prepared,
                          PrepareDecoder(std::move(here), device, options.gpus, [&reader] { reader.CheckStop(); }));
      weights.places.push_back(PlaceOf(info, device, std::move(prepared)));
      return absl::OkStatus();
    };
    for (size_t i = 0; i + 1 < devices.size(); ++i) LS_RETURN_IF_ERROR(place(devices[i], decoder));
    // Moved, so that each tensor is freed as soon as it is packed.
    LS_RETURN_IF_ERROR(place(devices.back(), std::move(decoder)));
    return weights;
  } catch (const std::exception& error) {
    LS_RETURN_IF_ERROR(reader.status());
    return LibraryError(absl::StrCat("while loading ", directory.path), error);
  }
}

absl::StatusOr<std::unique_ptr<Tokenizer>> LoadTokenizer(const ModelDirectory& directory) {
  LS_ASSIGN_OR_RETURN(const LanguageModelConfig config,
                      ParseLanguageModelConfig(directory.config_text, directory.config_path()));
  if (config.tokenizer == TokenizerKind::kNone) {
    if (!directory.vocabulary_text) return nullptr;
    return absl::InvalidArgumentError(
        absl::StrCat(directory.vocabulary_path(), ": exists, but config.json's tokenizer is \"none\""));
  }
  if (!directory.vocabulary_text) {
    return absl::InvalidArgumentError(
        absl::StrCat(directory.vocabulary_path(), ": missing, and config.json names a tokenizer"));
  }
  const Tokenizer::Unit unit =
      config.tokenizer == TokenizerKind::kFairseqBytes ? Tokenizer::Unit::kByte : Tokenizer::Unit::kCharacter;
  return LoadFairseqTokenizer(unit, *directory.vocabulary_text, directory.vocabulary_path(), config.vocabulary_size);
}

namespace language_model {

absl::StatusOr<LoadedModel> Load(const ModelDirectory& directory, const LoadOptions& options, const ImageLimits&) {
  LoadedLanguageModel loaded;
  LS_ASSIGN_OR_RETURN(loaded.weights, LoadLanguageModel(directory, options));
  LS_ASSIGN_OR_RETURN(loaded.tokenizer, LoadTokenizer(directory));
  return loaded;
}

absl::StatusOr<WeightSizes> Sizes(const ModelDirectory& directory, const LoadOptions& options) {
  const int64_t elements = directory.weights.Elements();
  // int8 is read in float32, and packed at the end.
  const std::string read_as = options.precision == "int8" ? "fp32" : options.precision;
  LS_ASSIGN_OR_RETURN(const LanguageModelConfig config,
                      ParseLanguageModelConfig(directory.config_text, directory.config_path()));
  // In every precision, positions and the rows of the embedding are float32.
  const int64_t positions = WeightBytes(config.PositionTableElements(), "fp32");
  const int64_t embedding =
      options.precision == "fp32" ? 0 : WeightBytes(config.vocabulary_size * config.model_width, "fp32");
  const int64_t bytes = WeightBytes(elements, options.precision) + positions + embedding;
  return WeightSizes{
      .loading_bytes = WeightBytes(elements, read_as) + positions + embedding, .host_bytes = bytes, .gpu_bytes = bytes};
}

FamilyLoader Loader() { return {.architecture = "language_model", .load = Load, .sizes = Sizes}; }

}  // namespace language_model
}  // namespace longshort::models
