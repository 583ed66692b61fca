#include "models/train/language_model_trainer.h"

#include <algorithm>
#include <atomic>
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
#include "models/train/example_order.h"
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
                    StreamBatches train, StreamBatches held_out, std::optional<StreamBatches> validation)
      : options_(options),
        train_(std::move(train)),
        held_out_(std::move(held_out)),
        validation_(std::move(validation)),
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
    shards_.RunStep([&](int64_t shard) { RunShard(shard, step, batch); });
    double loss = 0;
    for (const Streams& streams : streams_) loss += streams.loss * Share(streams);
    return loss;
  }

  std::vector<NamedParameter> State() const override {
    std::vector<NamedParameter> tensors;
    for (const Streams& streams : streams_) {
      for (size_t layer = 0; layer < streams.memory.size(); ++layer) {
        const LayerMemory& memory = streams.memory[layer];
        // Each stream by itself, so that a run may continue with another number of shards.
        for (int64_t stream = 0; stream < streams.count; ++stream) {
          const std::string prefix = absl::StrCat("memory.", streams.first + stream, ".", layer, ".");
          const auto add = [&](const std::string& name, const at::Tensor& of_all) {
            tensors.push_back({prefix + name, of_all.narrow(0, stream, 1)});
          };
          add("window_keys", memory.window_keys);
          add("window_values", memory.window_values);
          add("memory_keys", memory.memory_keys);
          add("memory_values", memory.memory_values);
        }
      }
    }
    return tensors;
  }

  std::optional<HeldOutResult> HeldOut(absl::FunctionRef<bool()> stops) const override {
    return Evaluate(held_out_, stops);
  }
  bool has_validation() const override { return validation_.has_value(); }
  std::optional<HeldOutResult> Validation(absl::FunctionRef<bool()> stops) const override {
    return Evaluate(*validation_, stops);
  }

 private:
  std::optional<HeldOutResult> Evaluate(const StreamBatches& part, absl::FunctionRef<bool()> stops) const {
    std::vector<double> losses(streams_.size());  // of each shard, in nats per token
    std::atomic<bool> stopped = false;
    shards_.Run([&](int64_t shard) {
      const c10::NoGradGuard no_grad;
      const Streams& streams = streams_[shard];
      const Decoder decoder = DecoderOf(parameters_);
      StreamMemory memory = ZeroMemory(decoder, streams.count);
      for (int64_t index = 0; index < part.batches_per_pass() && !stopped; ++index) {
        if (shard == 0 && stops()) stopped = true;
        losses[shard] += LossOf(decoder, part.At(index), streams, memory).item<double>();
      }
      losses[shard] /= static_cast<double>(part.batches_per_pass());
    });
    if (stopped) return std::nullopt;
    double loss = 0;
    for (size_t shard = 0; shard < losses.size(); ++shard) loss += losses[shard] * Share(streams_[shard]);
    return HeldOutResult{
        .figures = absl::StrFormat("%.4f bits/byte over %d tokens", loss / std::numbers::ln2,
                                   part.batches_per_pass() * options_.batch * options_.tokens_per_stream),
        .details = "",
        .score = -loss,
        .loss = loss};
  }

  // The batch's streams that one shard computes.
  struct Streams {
    int64_t first = 0, count = 0;
    StreamMemory memory;
    double loss = 0;  // nats per token, of the last batch
  };

  Decoder DecoderOf(const std::vector<NamedParameter>& parameters) const {
    return MakeDecoder(options_.config, options_.bfloat16_products ? at::kBFloat16 : at::kFloat, ByName(parameters));
  }

  // The mean cross entropy of these streams of the batch. Reads and then replaces `memory`.
  static at::Tensor LossOf(const Decoder& decoder, const StreamBatches::Batch& batch, const Streams& streams,
                           StreamMemory& memory, Dropout* dropout = nullptr) {
    const at::Tensor inputs = batch.inputs.narrow(0, streams.first, streams.count);
    const at::Tensor targets = batch.targets.narrow(0, streams.first, streams.count);
    return at::cross_entropy_loss(ForwardSegments(decoder, inputs, memory, dropout).flatten(0, 1), targets.flatten());
  }

  // Streams have seeds of their own, so that the number of shards does not matter.
  Dropout DropoutOf(int64_t step, const Streams& streams) const {
    const auto seed = [&](int64_t stream) {
      return DropoutSeed(static_cast<uint64_t>(step * (options_.batch + 1) + stream), options_.seed);
    };
    std::vector<uint64_t> seeds;
    seeds.reserve(streams.count);
    for (int64_t stream = 0; stream < streams.count; ++stream) seeds.push_back(seed(streams.first + stream));
    return {options_.dropout, seed(options_.batch), seeds};
  }

  double Share(const Streams& streams) const {
    return static_cast<double>(streams.count) / static_cast<double>(options_.batch);
  }

  // The forward and backward pass of a shard's streams.
  void RunShard(int64_t shard, int64_t step, const StreamBatches::Batch& batch) {
    Streams& streams = streams_[shard];
    const Decoder decoder = DecoderOf(shards_.of(shard));
    if (batch.starts) streams.memory = ZeroMemory(decoder, streams.count);
    Dropout dropout = DropoutOf(step, streams);
    const at::Tensor loss = LossOf(decoder, batch, streams, streams.memory, &dropout);
    loss.mul(Share(streams)).backward();
    streams.loss = loss.item<double>();
  }

  const LanguageModelTrainerOptions& options_;
  StreamBatches train_, held_out_;
  std::optional<StreamBatches> validation_;
  std::vector<NamedParameter> parameters_;
  mutable ParameterShards shards_;  // evaluations use its threads, too
  std::vector<Streams> streams_;    // of each shard
};

RunSettings SettingsOfRun(const LanguageModelTrainerOptions& options, const std::string& text_hash) {
  RunSettings settings = SettingsOf(options);
  AddConfig(ToJson(options.config), settings);
  settings["--tokens-per-stream"] = absl::StrCat(options.tokens_per_stream);
  settings["--held-out"] = absl::StrCat(options.held_out_fraction);
  if (options.dropout.rows > 0) settings["--dropout"] = absl::StrCat(options.dropout.rows);
  if (options.validation_fraction > 0) settings["--validation"] = absl::StrCat(options.validation_fraction);
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

// The parts of the text, in its order.
struct TextParts {
  std::string_view train, validation, held_out;
};

TextParts Divide(std::string_view text, const LanguageModelTrainerOptions& options) {
  const auto before = [&](double fraction_behind) {
    return static_cast<size_t>(static_cast<double>(text.size()) * (1 - fraction_behind));
  };
  const size_t held_out = before(options.held_out_fraction);
  const size_t validation = before(options.held_out_fraction + options.validation_fraction);
  return {.train = text.substr(0, validation),
          .validation = text.substr(validation, held_out - validation),
          .held_out = text.substr(held_out)};
}

// Each part's tokens are its bytes.
absl::Status CheckOptions(const LanguageModelTrainerOptions& options, const TextParts& parts) {
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
  const bool has_validation = options.validation_fraction > 0;
  for (const std::string_view part : {parts.train, parts.held_out, has_validation ? parts.validation : parts.train}) {
    if (static_cast<int64_t>(part.size()) > batch_tokens) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the text has ", parts.train.size(), " training", has_validation ? ", " : " and ",
                     has_validation ? absl::StrCat(parts.validation.size(), " validation and ") : "",
                     parts.held_out.size(), " held-out tokens; each must exceed one batch of ", batch_tokens));
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
  if (options.held_out_fraction + options.validation_fraction >= 1) {
    return absl::InvalidArgumentError(absl::StrCat("--held-out=", options.held_out_fraction, " and --validation=",
                                                   options.validation_fraction, " leave no text to train on"));
  }
  const TextParts parts = Divide(text, options);
  std::string vocabulary = ByteVocabulary(parts.train);
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
  LS_RETURN_IF_ERROR(CheckOptions(options, parts));
  const auto batches = [&](std::string_view part) -> absl::StatusOr<StreamBatches> {
    LS_ASSIGN_OR_RETURN(std::vector<int32_t> ids, tokenizer->Encode(part));
    return StreamBatches(std::move(ids), options.batch, options.tokens_per_stream);
  };
  LS_ASSIGN_OR_RETURN(StreamBatches train, batches(parts.train));
  LS_ASSIGN_OR_RETURN(StreamBatches held_out, batches(parts.held_out));
  std::optional<StreamBatches> validation;
  if (options.validation_fraction > 0) {
    LS_ASSIGN_OR_RETURN(validation, batches(parts.validation));
  }
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
    return std::make_unique<LanguageModelTask>(options, std::move(parameters), std::move(train), std::move(held_out),
                                               std::move(validation));
  };
  const auto write = [&](const std::vector<NamedParameter>& result,
                         const std::map<std::string, std::string>& metadata) {
    return WriteLanguageModel(options.output_directory, options.config, result, vocabulary, metadata);
  };
  const ProgressUnits units{
      .name = "tokens", .per_step = options.batch * options.tokens_per_stream, .bits_per_byte = true};
  const ModelRun run{.settings = settings,
                     .units = units,
                     .data_report = absl::StrCat(
                         "data: ", parts.train.size(), " bytes to train on, ",
                         validation ? absl::StrCat(parts.validation.size(), " to choose the best weights, ") : "",
                         parts.held_out.size(), " held out\n"),
                     .call = "generate --prompt='Once' --max-tokens=100",
                     .input = "",
                     .make_task = make_task,
                     .write = write};
  return TrainModel(options, run);
}

}  // namespace longshort::models
