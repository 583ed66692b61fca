#include "models/train/trainer.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <future>
#include <memory>
#include <numbers>
#include <utility>
#include <vector>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "c10/core/GradMode.h"
#include "models/language_model/segment_forward.h"
#include "models/status_macros.h"
#include "models/tokenizer/fairseq_tokenizer.h"
#include "models/train/checkpoint.h"
#include "models/train/progress.h"
#include "models/train/training_text.h"
#include "models/weights/sha256.h"

namespace longshort {
namespace {

class Trainer final {
 public:
  Trainer(const TrainerOptions& options, std::string vocabulary, StreamBatches train, StreamBatches held_out,
          std::string settings)
      : options_(options),
        vocabulary_(std::move(vocabulary)),
        train_(std::move(train)),
        held_out_(std::move(held_out)),
        parameters_(InitialParameters(options.config, options.seed)),
        optimizer_(options.optimizer, parameters_) {
    state_.settings = std::move(settings);
    for (int64_t index = 0; index < options.shards; ++index) {
      Shard shard;
      shard.first_stream = options.batch * index / options.shards;
      shard.streams = options.batch * (index + 1) / options.shards - shard.first_stream;
      for (const NamedParameter& parameter : parameters_) {
        const at::Tensor alias = parameter.value.detach();
        shard.parameters.push_back({parameter.name, alias.set_requires_grad(parameter.value.requires_grad())});
      }
      shard.memory = ZeroMemory(DecoderOf(shard.parameters), shard.streams);
      shards_.push_back(std::move(shard));
    }
  }

  absl::Status Run() {
    if (!options_.checkpoint_path.empty()) {
      absl::Status resumed = Resume();
      if (!resumed.ok() && !absl::IsNotFound(resumed)) return resumed;
    }
    const int64_t total = options_.optimizer.total_steps;
    TrainingProgress progress(state_.steps_done, total, options_.batch * options_.tokens_per_stream);
    while (state_.steps_done < total) {
      const int64_t step = state_.steps_done;
      const double bits = LossStep(train_.At(step));
      const double norm = optimizer_.Step(step);
      if (!std::isfinite(norm)) {
        return absl::OutOfRangeError(absl::StrCat("step ", step + 1, ": the gradient is not finite (loss ", bits,
                                                  " bits/byte); lower --learning-rate and go on from the checkpoint"));
      }
      ++state_.steps_done;
      progress.Report(state_.steps_done, bits, norm, LearningRate(options_.optimizer, step));
      const bool last = state_.steps_done == total;
      const bool stop = state_.steps_done == options_.stop_after_steps;
      if (last || stop || state_.steps_done % options_.checkpoint_interval == 0) LS_RETURN_IF_ERROR(Save());
      if (stop && !last) return absl::OkStatus();
      if (state_.steps_done % options_.held_out_interval == 0 || (last && options_.held_out_interval > 0)) {
        progress.ReportHeldOut(state_.steps_done, HeldOutBits(), HeldOutTokens());
      }
    }
    return WriteModelDirectory(options_.output_directory, options_.config, parameters_, vocabulary_);
  }

 private:
  // Some of the streams, worked on by one thread: the same weights (the tensors share their storage), gradients of its
  // own.
  struct Shard {
    int64_t first_stream = 0, streams = 0;
    std::vector<NamedParameter> parameters;
    StreamMemory memory;
    double loss = 0;  // nats per token, of the last batch
  };

  Decoder DecoderOf(const std::vector<NamedParameter>& parameters) const {
    return DecoderOver(options_.config, parameters, options_.bfloat16_products ? at::kBFloat16 : at::kFloat);
  }

  static at::Tensor CrossEntropy(const at::Tensor& logits, const at::Tensor& targets) {
    return at::cross_entropy_loss(logits.flatten(0, 1), targets.flatten());
  }

  // Forward and backward of one batch, its streams shared among the shards; returns the loss in bits per token.
  double LossStep(const StreamBatches::Batch& batch) {
    std::vector<std::future<void>> running;
    for (Shard& shard : shards_) {
      running.push_back(std::async(std::launch::async, [this, &shard, &batch] { RunShard(shard, batch); }));
    }
    for (std::future<void>& shard : running) shard.get();

    double loss = 0;
    for (Shard& shard : shards_) {
      loss += shard.loss * Share(shard);
      for (size_t i = 0; i < parameters_.size(); ++i) {
        at::Tensor& gradient = shard.parameters[i].value.mutable_grad();
        if (!gradient.defined()) continue;
        at::Tensor& sum = parameters_[i].value.mutable_grad();
        if (sum.defined()) {
          sum.add_(gradient);
        } else {
          sum = gradient;
        }
        gradient = at::Tensor();
      }
    }
    return loss / std::numbers::ln2;
  }

  double Share(const Shard& shard) const {
    return static_cast<double>(shard.streams) / static_cast<double>(options_.batch);
  }

  void RunShard(Shard& shard, const StreamBatches::Batch& batch) {
    const Decoder decoder = DecoderOf(shard.parameters);
    if (batch.starts) shard.memory = ZeroMemory(decoder, shard.streams);
    const at::Tensor inputs = batch.inputs.narrow(0, shard.first_stream, shard.streams);
    const at::Tensor targets = batch.targets.narrow(0, shard.first_stream, shard.streams);
    const at::Tensor loss = CrossEntropy(ForwardSegments(decoder, inputs, shard.memory), targets);
    loss.mul(Share(shard)).backward();
    shard.loss = loss.item<double>();
  }

  double HeldOutBits() const {
    const c10::NoGradGuard no_grad;
    const Decoder decoder = DecoderOf(parameters_);
    StreamMemory memory = ZeroMemory(decoder, options_.batch);
    double sum = 0;
    for (int64_t index = 0; index < held_out_.batches_per_pass(); ++index) {
      const StreamBatches::Batch batch = held_out_.At(index);
      sum += CrossEntropy(ForwardSegments(decoder, batch.inputs, memory), batch.targets).item<double>();
    }
    return sum / static_cast<double>(held_out_.batches_per_pass()) / std::numbers::ln2;
  }

  int64_t HeldOutTokens() const { return held_out_.batches_per_pass() * options_.batch * options_.tokens_per_stream; }

  // Everything that changes from step to step, under names for the checkpoint.
  std::vector<NamedParameter> Tensors() const {
    std::vector<NamedParameter> tensors = parameters_;
    for (NamedParameter& tensor : optimizer_.State()) tensors.push_back(std::move(tensor));
    for (const Shard& shard : shards_) {
      for (size_t layer = 0; layer < shard.memory.size(); ++layer) {
        const LayerMemory& memory = shard.memory[layer];
        const std::string prefix = absl::StrCat("memory.", shard.first_stream, ".", layer, ".");
        tensors.push_back({prefix + "window_keys", memory.window_keys});
        tensors.push_back({prefix + "window_values", memory.window_values});
        tensors.push_back({prefix + "memory_keys", memory.memory_keys});
        tensors.push_back({prefix + "memory_values", memory.memory_values});
      }
    }
    return tensors;
  }

  absl::Status Save() {
    if (options_.checkpoint_path.empty()) return absl::OkStatus();
    state_.tensors = Tensors();
    return SaveCheckpoint(options_.checkpoint_path, state_);
  }

  absl::Status Resume() {
    state_.tensors = Tensors();
    LS_RETURN_IF_ERROR(LoadCheckpoint(options_.checkpoint_path, state_));
    absl::FPrintF(stderr, "going on from %s after step %d\n", options_.checkpoint_path, state_.steps_done);
    return absl::OkStatus();
  }

  TrainerOptions options_;
  std::string vocabulary_;
  StreamBatches train_, held_out_;
  std::vector<NamedParameter> parameters_;
  Optimizer optimizer_;
  std::vector<Shard> shards_;
  TrainingState state_;
};

// What decides a run, in one line: equal lines, equal runs.
std::string Settings(const TrainerOptions& options, const std::string& text_hash) {
  const OptimizerOptions& optimizer = options.optimizer;
  return absl::StrCat(ToJson(options.config), " batch=", options.batch, " tokens=", options.tokens_per_stream,
                      " shards=", options.shards, " seed=", options.seed, " steps=", optimizer.total_steps,
                      " rate=", optimizer.peak_learning_rate, " warmup=", optimizer.warmup_steps,
                      " final=", optimizer.final_fraction, " decay=", optimizer.weight_decay,
                      " clip=", optimizer.gradient_norm, " held_out=", options.held_out_fraction,
                      " bfloat16=", options.bfloat16_products, " text=", text_hash);
}

absl::Status CheckOptions(const TrainerOptions& options, int64_t train_tokens, int64_t held_out_tokens) {
  if (options.tokens_per_stream % options.config.segment_length != 0) {
    return absl::InvalidArgumentError(absl::StrCat("--tokens-per-stream is ", options.tokens_per_stream,
                                                   ", not a multiple of --segment-length ",
                                                   options.config.segment_length));
  }
  if (options.shards < 1 || options.shards > options.batch) {
    return absl::InvalidArgumentError(
        absl::StrCat("--shards is ", options.shards, ", not in 1 .. --batch ", options.batch));
  }
  const int64_t batch_tokens = options.batch * options.tokens_per_stream;
  if (std::min(train_tokens, held_out_tokens) <= batch_tokens) {
    return absl::InvalidArgumentError(absl::StrCat("the text gives ", train_tokens, " training and ", held_out_tokens,
                                                   " held-out tokens; each must exceed one batch of ", batch_tokens));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Train(const TrainerOptions& given, const std::string& text) {
  TrainerOptions options = given;
  const size_t split = static_cast<size_t>(static_cast<double>(text.size()) * (1 - options.held_out_fraction));
  const std::string_view train_text = std::string_view(text).substr(0, split),
                         held_out_text = std::string_view(text).substr(split);
  const std::string vocabulary = ByteVocabulary(train_text);
  // 4 special ids and 255 bytes (the newline is one of the special ids), filled up to a multiple of 8.
  options.config.vocabulary_size = 264;
  options.config.tokenizer = TokenizerKind::kFairseqBytes;
  LS_RETURN_IF_ERROR(CheckLanguageModelConfig(options.config, "the given flags"));
  LS_ASSIGN_OR_RETURN(const auto tokenizer, LoadFairseqTokenizer(Tokenizer::Unit::kByte, vocabulary, "vocabulary",
                                                                 options.config.vocabulary_size));
  LS_ASSIGN_OR_RETURN(std::vector<int32_t> train_ids, tokenizer->Encode(train_text));
  LS_ASSIGN_OR_RETURN(std::vector<int32_t> held_out_ids, tokenizer->Encode(held_out_text));
  LS_RETURN_IF_ERROR(
      CheckOptions(options, static_cast<int64_t>(train_ids.size()), static_cast<int64_t>(held_out_ids.size())));
  LS_ASSIGN_OR_RETURN(Sha256 hash, Sha256::Create());
  LS_RETURN_IF_ERROR(hash.Add("text", text));
  LS_ASSIGN_OR_RETURN(const std::string text_hash, hash.Finish());
  try {
    Trainer trainer(options, vocabulary, {std::move(train_ids), options.batch, options.tokens_per_stream},
                    {std::move(held_out_ids), options.batch, options.tokens_per_stream}, Settings(options, text_hash));
    return trainer.Run();
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("training failed in LibTorch: ", error.what()));
  }
}

}  // namespace longshort
