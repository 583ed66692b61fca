#include "models/families/language_model/language_model.h"

#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "c10/core/InferenceMode.h"
#include "models/device/library.h"
#include "models/families/language_model/backends.h"
#include "models/families/language_model/language_model_config.h"
#include "models/families/language_model/transformer_ls.h"
#include "models/ops/layers/stored_tensor.h"
#include "models/tokenizer/fairseq_tokenizer.h"

namespace longshort::models {
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

}  // namespace longshort::models
