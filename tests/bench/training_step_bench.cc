// The speed of a training step, against the processor's product peak, with the share of time of its parts.
// longshort-training-bench [ROUNDS]. One thread, and its processor time.
//
// Each round measures the peak and then one step of each model, so that other load on the machine affects both. A
// figure is the median of its rounds. The work of a step is three times the forward pass's: once forwards, and twice
// for the gradients of rows and of weights.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "ATen/Functions.h"
#include "ATen/Parallel.h"
#include "ATen/core/Reduction.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "models/device/library.h"
#include "models/families/family.h"
#include "models/families/language_model/decoder.h"
#include "models/families/language_model/language_model_config.h"
#include "models/families/text_classifier/text_classifier_config.h"
#include "models/families/text_classifier/text_network.h"
#include "models/train/optimizer.h"
#include "models/train/parameters.h"

namespace longshort::models {
namespace {

// Processor time, which other programs on the machine do not lengthen.
double SecondsOf(const std::function<void()>& work) {
  const std::clock_t start = std::clock();
  work();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Multiply-adds a second of a large product in float32.
double ProductPeak() {
  constexpr int64_t kSide = 1024;
  static const at::Tensor a = at::randn({kSide, kSide}), b = at::randn({kSide, kSide});
  const double seconds = SecondsOf([] {
    for (int64_t i = 0; i < 4; ++i) at::mm(a, b);
  });
  return 4.0 * kSide * kSide * kSide / seconds;
}

// A model with a batch.
class Workload {
 public:
  Workload(std::string name, const std::vector<TensorShape>& tensors)
      : name_(std::move(name)), parameters_(InitialParameters(tensors, 1)), optimizer_({}, parameters_) {}
  virtual ~Workload() = default;

  void Step(double peak) {
    at::Tensor loss;
    const double seconds[] = {SecondsOf([this] { Prepare(); }), SecondsOf([&] { loss = Loss(); }),
                              SecondsOf([&] { loss.backward(); }),
                              SecondsOf([this] { optimizer_.Step(step_++, {.learning_rate = 1e-4, .beta1 = 0.9}); })};
    double all = 0;
    for (const double part : seconds) all += part;
    for (size_t part = 0; part < std::size(seconds); ++part) shares_[part].push_back(seconds[part] / all);
    tokens_a_second_.push_back(tokens() / all);
    of_peak_.push_back(3 * multiply_adds() / all / peak);
  }

  void Print() const {
    absl::PrintF("%-34s %9.0f %8.1f %%", name_, Median(tokens_a_second_), 100 * Median(of_peak_));
    for (const std::vector<double>& share : shares_) absl::PrintF(" %9.1f %%", 100 * Median(share));
    absl::PrintF("\n");
  }

 protected:
  const std::vector<NamedParameter>& parameters() const { return parameters_; }

 private:
  virtual void Prepare() {}
  virtual at::Tensor Loss() = 0;
  virtual double tokens() const = 0;
  virtual double multiply_adds() const = 0;  // of the forward pass

  const std::string name_;
  const std::vector<NamedParameter> parameters_;
  Optimizer optimizer_;
  int64_t step_ = 0;
  std::vector<double> shares_[4], tokens_a_second_, of_peak_;
};

// Long Range Arena's ListOps: documents of 400 to 1,400 tokens, 901 on average, 4 at once as in models/zoo/listops.
class ListOps final : public Workload {
 public:
  explicit ListOps(const TextClassifierConfig& config)
      : Workload(absl::StrFormat("ListOps, w %d, r %d", config.window_size, config.projection_rank),
                 TextClassifierTensors(config)),
        network_(MakeTextNetwork(config, ByName(parameters()))) {
    std::mt19937_64 random(1);
    for (const int64_t length : {400, 700, 1104, 1400}) {
      for (int32_t& id : documents_.emplace_back(length)) id = static_cast<int32_t>(1 + random() % 15);
      tokens_ += static_cast<double>(length);
    }
  }

 private:
  void Prepare() override {
    packed_ = std::make_shared<const PackedDocuments>(
        network_.Pack(std::vector<absl::Span<const int32_t>>(documents_.begin(), documents_.end())));
  }
  at::Tensor Loss() override {
    return at::cross_entropy_loss(network_.Logits(packed_), at::tensor({0, 1, 2, 3}, at::kLong));
  }
  double tokens() const override { return tokens_; }
  double multiply_adds() const override {
    return static_cast<double>(network_.MultiplyAdds(ClassifierOutput::kLogits, *packed_));
  }

  const TextNetwork network_;
  std::vector<std::vector<int32_t>> documents_;
  std::shared_ptr<const PackedDocuments> packed_;
  double tokens_ = 0;
};

TextClassifierConfig ListOpsConfig(int64_t window, int64_t rank) {
  TextClassifierConfig config;
  config.window_size = window;
  config.projection_rank = rank;
  config.max_sequence_length = 2048;
  config.classes = 10;
  return config;
}

// The model of models/zoo/enwiki: 8 streams of 512 bytes.
class LanguageModelStreams final : public Workload {
 public:
  LanguageModelStreams(const LanguageModelConfig& config, at::ScalarType products)
      : Workload(absl::StrFormat("enwiki, %s products", products == at::kFloat ? "float32" : "bfloat16"),
                 LanguageModelTensors(config)),
        config_(config),
        products_(products),
        ids_(at::randint(4, config.vocabulary_size, {kStreams, kTokens + 1}, at::kLong)),
        memory_(ZeroMemory(NewDecoder(), kStreams)) {}

 private:
  static constexpr int64_t kStreams = 8, kTokens = 512;

  Decoder NewDecoder() const { return MakeDecoder(config_, products_, ByName(parameters())); }
  at::Tensor Loss() override {
    const at::Tensor logits = ForwardSegments(NewDecoder(), ids_.narrow(1, 0, kTokens), memory_);
    return at::cross_entropy_loss(logits.flatten(0, 1), ids_.narrow(1, 1, kTokens).flatten());
  }
  double tokens() const override { return kStreams * kTokens; }
  double multiply_adds() const override {
    double of_token = 0;
    for (const StageCost& stage : Describe(config_).stages) of_token += stage.multiply_adds;
    return of_token * tokens();
  }

  const LanguageModelConfig config_;
  const at::ScalarType products_;
  const at::Tensor ids_;
  StreamMemory memory_;
};

LanguageModelConfig EnwikiConfig() {
  LanguageModelConfig config;
  config.layers = 6;
  config.model_width = 256;
  config.heads = 8;
  config.feed_forward_width = 1024;
  config.chunk_size = 16;
  config.chunk_rank = 1;
  config.window_length = 128;
  config.memory_length = 1024;
  config.segment_length = 256;
  config.vocabulary_size = 264;
  return config;
}

int Main(int rounds) {
  at::set_num_threads(1);
  KeptMemory memory;
  memory.Use();
  std::vector<std::unique_ptr<Workload>> workloads;
  workloads.push_back(std::make_unique<ListOps>(ListOpsConfig(8, 32)));
  workloads.push_back(std::make_unique<ListOps>(ListOpsConfig(16, 2)));
  workloads.push_back(std::make_unique<LanguageModelStreams>(EnwikiConfig(), at::kFloat));
  workloads.push_back(std::make_unique<LanguageModelStreams>(EnwikiConfig(), at::kBFloat16));
  std::vector<double> peaks;
  for (int round = 0; round < rounds; ++round) {
    for (const std::unique_ptr<Workload>& workload : workloads) {
      peaks.push_back(ProductPeak());
      workload->Step(peaks.back());
    }
  }
  absl::PrintF("peak: %.1f billion multiply-adds/s (float32, 1024 x 1024 x 1024)\n", Median(peaks) / 1e9);
  absl::PrintF("%-34s %9s %10s %11s %11s %11s %11s\n", "", "tokens/s", "of peak", "packing", "forward", "backward",
               "optimizer");
  for (const std::unique_ptr<Workload>& workload : workloads) workload->Print();
  return 0;
}

}  // namespace
}  // namespace longshort::models

int main(int argc, char** argv) {
  int rounds = 9;
  if (argc > 2 || (argc == 2 && (!absl::SimpleAtoi(argv[1], &rounds) || rounds < 1))) {
    std::fprintf(stderr, "Usage: longshort-training-bench [ROUNDS]\n");
    return 2;
  }
  return longshort::models::Main(rounds);
}
