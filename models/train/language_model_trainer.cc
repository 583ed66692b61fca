#include "models/train/language_model_trainer.h"

#include <algorithm>
#include <memory>
#include <numbers>
#include <optional>
#include <utility>
#include <vector>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/sha256.h"
#include "base/status_macros.h"
#include "c10/core/GradMode.h"
#include "models/families/language_model/decoder.h"
#include "models/families/language_model/language_model_config.h"
#include "models/tokenizer/tokenizers.h"
#include "models/train/model_writer.h"
#include "models/train/starting_model.h"
#include "models/train/training_text.h"
#include "models/weights/model_directory.h"

namespace longshort::models {
namespace {

class LanguageModelTask final : public TrainingTask {
 public:
  // `parameters`: the weights that the run begins with.
  LanguageModelTask(const LanguageModelTrainerOptions& options, std::vector<NamedParameter> parameters,
                    StreamBatches train, StreamBatches held_out)
      : options_(options),
        train_(std::move(train)),
        held_out_(std::move(held_out)),
        parameters_(std::move(parameters)),
        shards_(parameters_, options.shards) {
    for (int64_t index = 0; index < options.shards; ++index) {
      const int64_t first = options.batch * index / options.shards;
      const int64_t streams = options.batch * (index + 1) / options.shards - first;
      streams_.push_back({.first = first, .count = streams, .memory = ZeroMemory(DecoderOf(parameters_), streams)});
    }
  }

  const std::vector<NamedParameter>& parameters() const override { return parameters_; }

  double LossStep(int64_t step) override {
    const StreamBatches::Batch batch = train_.At(step);
    shards_.Run([&](int64_t shard) { RunShard(shard, batch); });
    double loss = 0;
    for (const Streams& streams : streams_) loss += streams.loss * Share(streams);
    return loss;
  }

  std::vector<NamedParameter> State() const override {
    std::vector<NamedParameter> tensors;
    for (const Streams& streams : streams_) {
      for (size_t layer = 0; layer < streams.memory.size(); ++layer) {
        const LayerMemory& memory = streams.memory[layer];
        const std::string prefix = absl::StrCat("memory.", streams.first, ".", layer, ".");
        tensors.push_back({prefix + "window_keys", memory.window_keys});
        tensors.push_back({prefix + "window_values", memory.window_values});
        tensors.push_back({prefix + "memory_keys", memory.memory_keys});
        tensors.push_back({prefix + "memory_values", memory.memory_values});
      }
    }
    return tensors;
  }

  std::optional<HeldOutResult> HeldOut(absl::FunctionRef<bool()> stops) const override {
    const c10::NoGradGuard no_grad;
    const Decoder decoder = DecoderOf(parameters_);
    StreamMemory memory = ZeroMemory(decoder, options_.batch);
    double sum = 0;
    for (int64_t index = 0; index < held_out_.batches_per_pass(); ++index) {
      if (stops()) return std::nullopt;
      const StreamBatches::Batch batch = held_out_.At(index);
      sum += CrossEntropy(ForwardSegments(decoder, batch.inputs, memory), batch.targets).item<double>();
    }
    const double loss = sum / static_cast<double>(held_out_.batches_per_pass());
    return HeldOutResult{
        .figures = absl::StrFormat("%.4f bits/byte over %d tokens", loss / std::numbers::ln2,
                                   held_out_.batches_per_pass() * options_.batch * options_.tokens_per_stream),
        .details = "",
        .score = -loss,
        .loss = loss};
  }

 private:
  // The batch's streams that one shard computes.
  struct Streams {
    int64_t first = 0, count = 0;
    StreamMemory memory;
    double loss = 0;  // nats per token, of the last batch
  };

  Decoder DecoderOf(const std::vector<NamedParameter>& parameters) const {
    return MakeDecoder(options_.config, options_.bfloat16_products ? at::kBFloat16 : at::kFloat, ByName(parameters));
  }

  static at::Tensor CrossEntropy(const at::Tensor& logits, const at::Tensor& targets) {
    return at::cross_entropy_loss(logits.flatten(0, 1), targets.flatten());
  }

  double Share(const Streams& streams) const {
    return static_cast<double>(streams.count) / static_cast<double>(options_.batch);
  }

  // The forward and backward pass of a shard's streams.
  void RunShard(int64_t shard, const StreamBatches::Batch& batch) {
    Streams& streams = streams_[shard];
    const Decoder decoder = DecoderOf(shards_.of(shard));
    if (batch.starts) streams.memory = ZeroMemory(decoder, streams.count);
    const at::Tensor inputs = batch.inputs.narrow(0, streams.first, streams.count);
    const at::Tensor targets = batch.targets.narrow(0, streams.first, streams.count);
    const at::Tensor loss = CrossEntropy(ForwardSegments(decoder, inputs, streams.memory), targets);
    loss.mul(Share(streams)).backward();
    streams.loss = loss.item<double>();
  }

  const LanguageModelTrainerOptions& options_;
  StreamBatches train_, held_out_;
  std::vector<NamedParameter> parameters_;
  ParameterShards shards_;
  std::vector<Streams> streams_;  // of each shard
};

RunSettings SettingsOfRun(const LanguageModelTrainerOptions& options, const std::string& text_hash) {
  RunSettings settings = SettingsOf(options);
  AddConfig(ToJson(options.config), settings);
  settings["--tokens-per-stream"] = absl::StrCat(options.tokens_per_stream);
  settings["--held-out"] = absl::StrCat(options.held_out_fraction);
  settings["the text's hash"] = text_hash;
  return settings;
}

// The config of a model to begin with. Errors: INVALID_ARGUMENT if it is not a language model of bytes.
absl::StatusOr<LanguageModelConfig> ConfigOf(const ModelDirectory& model) {
  LS_ASSIGN_OR_RETURN(LanguageModelConfig config, ParseLanguageModelConfig(model.config_text, model.config_path()));
  if (config.tokenizer == TokenizerKind::kFairseqBytes && model.vocabulary_text) return config;
  return absl::InvalidArgumentError(
      absl::StrCat("--from=", model.path, ": its tokenizer is not fairseq_bytes; only models of bytes can be trained"));
}

absl::Status CheckOptions(const LanguageModelTrainerOptions& options, int64_t train_tokens, int64_t held_out_tokens) {
  if (options.tokens_per_stream % options.config.segment_length != 0) {
    return absl::InvalidArgumentError(absl::StrCat("--tokens-per-stream is ", options.tokens_per_stream,
                                                   ", not a multiple of --segment-length ",
                                                   options.config.segment_length));
  }
  if (options.shards > options.batch) {
    return absl::InvalidArgumentError(
        absl::StrCat("--shards is ", options.shards, ", not in 1 .. --batch ", options.batch));
  }
  const int64_t batch_tokens = options.batch * options.tokens_per_stream;
  if (std::min(train_tokens, held_out_tokens) <= batch_tokens) {
    return absl::InvalidArgumentError(absl::StrCat("the text has ", train_tokens, " training and ", held_out_tokens,
                                                   " held-out tokens; each must exceed one batch of ", batch_tokens));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteLanguageModel(const std::string& directory, const LanguageModelConfig& config,
                                const std::vector<NamedParameter>& parameters, const std::string& vocabulary,
                                const std::map<std::string, std::string>& metadata) {
  return WriteModelDirectory(directory, parameters, /*exact=*/{"pos_emb.inv_freq"},
                             {{"vocabulary.txt", vocabulary}, {"config.json", ToJson(config)}}, metadata);
}

absl::Status TrainLanguageModel(const LanguageModelTrainerOptions& given, const std::string& text) {
  LanguageModelTrainerOptions options = given;
  LS_RETURN_IF_ERROR(CheckOutput(options));
  const size_t split = static_cast<size_t>(static_cast<double>(text.size()) * (1 - options.held_out_fraction));
  const std::string_view train_text = std::string_view(text).substr(0, split),
                         held_out_text = std::string_view(text).substr(split);
  std::string vocabulary = ByteVocabulary(train_text);
  std::optional<ModelDirectory> from;
  if (!options.from.empty()) {
    LS_ASSIGN_OR_RETURN(from, OpenModelDirectory(options.from));
    LS_ASSIGN_OR_RETURN(options.config, ConfigOf(*from));
    vocabulary = *from->vocabulary_text;
  } else {
    // 4 special ids and 255 bytes (the newline is one of the special ids), rounded up to a multiple of 8.
    options.config.vocabulary_size = 264;
    options.config.tokenizer = TokenizerKind::kFairseqBytes;
  }
  LS_RETURN_IF_ERROR(CheckLanguageModelConfig(options.config, "the given options"));
  LS_ASSIGN_OR_RETURN(const auto tokenizer, LoadFairseqTokenizer(Tokenizer::Unit::kByte, vocabulary, "vocabulary",
                                                                 options.config.vocabulary_size));
  LS_ASSIGN_OR_RETURN(std::vector<int32_t> train_ids, tokenizer->Encode(train_text));
  LS_ASSIGN_OR_RETURN(std::vector<int32_t> held_out_ids, tokenizer->Encode(held_out_text));
  LS_RETURN_IF_ERROR(
      CheckOptions(options, static_cast<int64_t>(train_ids.size()), static_cast<int64_t>(held_out_ids.size())));
  LS_ASSIGN_OR_RETURN(FingerprintHash hash, FingerprintHash::Create());
  LS_RETURN_IF_ERROR(hash.Add("text", text));
  LS_ASSIGN_OR_RETURN(const std::string text_hash, hash.Finish());
  RunSettings settings = SettingsOfRun(options, text_hash);
  if (from) AddStartingModel(*from, settings);
  const auto make_task = [&]() -> absl::StatusOr<std::unique_ptr<TrainingTask>> {
    std::vector<NamedParameter> parameters =
        InitialParameters(LanguageModelTensors(options.config), options.seed,
                          options.official_weights ? InitialWeights::kLanguageModel : InitialWeights::kScaled);
    if (from) LS_RETURN_IF_ERROR(BeginWith(*from, parameters));
    return std::make_unique<LanguageModelTask>(
        options, std::move(parameters), StreamBatches(std::move(train_ids), options.batch, options.tokens_per_stream),
        StreamBatches(std::move(held_out_ids), options.batch, options.tokens_per_stream));
  };
  const auto write = [&](const std::vector<NamedParameter>& result,
                         const std::map<std::string, std::string>& metadata) {
    return WriteLanguageModel(options.output_directory, options.config, result, vocabulary, metadata);
  };
  const ProgressUnits units{
      .name = "tokens", .per_step = options.batch * options.tokens_per_stream, .bits_per_byte = true};
  const ModelRun run{.settings = settings,
                     .units = units,
                     .data_report = absl::StrCat("data: ", train_text.size(), " bytes to train on, ",
                                                 held_out_text.size(), " held out\n"),
                     .call = "generate --prompt='Once' --max-tokens=100",
                     .input = "",
                     .make_task = make_task,
                     .write = write};
  return TrainModel(options, run);
}

}  // namespace longshort::models
