// The long-document encoder against docs/models/long_document_encoder.md, written out over whole matrices in double
// precision. With a covering window and rank 0 that is full attention: RoBERTa.

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/families/text_classifier/text_network.h"
#include "tests/base/status_matchers.h"
#include "tests/base/temporary_directory.h"
#include "tests/models/families/text_classifier/random_text_model.h"

namespace longshort::models::long_document_encoder_test {

using Words = std::vector<std::string>;
using Ids = std::vector<int32_t>;

constexpr int32_t kPadding = 1, kSeparator = 2;
constexpr uint64_t kSeed = 1;

// RoBERTa: 3 layers of 3 heads.
TextClassifierConfig Roberta() {
  TextClassifierConfig config = SmallEncoderConfig();
  config.layers = 3;
  config.model_width = 48;
  config.heads = 3;
  config.feed_forward_width = 80;
  config.window_size = 640;
  config.projection_rank = 0;
  config.max_sequence_length = 620;
  config.dual_norm = false;
  return config;
}

TextClassifierConfig LongShort(int64_t window, int64_t rank) {
  TextClassifierConfig config = Roberta();
  config.window_size = window;
  config.projection_rank = rank;
  config.dual_norm = true;
  return config;
}

class PlainEncoder final {
 public:
  explicit PlainEncoder(const TextClassifierConfig& config) : config_(config) {
    for (const auto& [name, value] : RandomTextTensors(config, kSeed)) tensors_[name] = value.to(at::kDouble);
  }

  // The last layer's rows, [n, D], of a document without padding.
  at::Tensor Rows(const Ids& ids) const {
    const auto count = static_cast<int64_t>(ids.size());
    const bool after = config_.layer_norm == LayerNormPlace::kAfter;
    at::Tensor rows = tensors_.at("model.embeddings.word_embeddings.weight")
                          .index_select(0, at::tensor(ids, at::TensorOptions(at::kInt))) +
                      tensors_.at("model.embeddings.position_embeddings.weight").narrow(0, 0, count);
    if (after) rows = Norm(rows, "model.embeddings.norm");
    for (int64_t index = 0; index < config_.layers; ++index) {
      const std::string layer = TextLayerPrefix(config_, index);
      const auto part = [&](const at::Tensor& input, const char* norm, const auto& map) {
        const std::string name = layer + norm;
        return after ? Norm(input + map(input), name) : input + map(Norm(input, name));
      };
      rows = part(rows, "norm1", [&](const at::Tensor& input) { return Attend(input, layer + "mha."); });
      rows = part(rows, "norm2", [&](const at::Tensor& input) {
        const at::Tensor inner = Map(input, layer + "mlpblock.0");
        return Map(inner * (1 + at::erf(inner / std::sqrt(2.0))) / 2, layer + "mlpblock.3");
      });
    }
    return after ? rows : Norm(rows, "model.norm");
  }

  at::Tensor Logits(const Ids& ids) const {
    const at::Tensor inner = Map(Rows(ids).narrow(0, 0, 1), "seq_classifer.mlpblock.0");
    return Map(config_.head == HeadKind::kTanh ? at::tanh(inner) : at::relu(inner), "seq_classifer.mlpblock.2");
  }

 private:
  at::Tensor Map(const at::Tensor& rows, const std::string& name) const {
    return at::matmul(rows, tensors_.at(name + ".weight").t()) + tensors_.at(name + ".bias");
  }
  at::Tensor Norm(const at::Tensor& rows, const std::string& name) const {
    const at::Tensor centred = rows - rows.mean(-1, /*keepdim=*/true);
    const at::Tensor deviation = (centred.square().mean(-1, /*keepdim=*/true) + config_.layer_norm_epsilon).sqrt();
    return centred / deviation * tensors_.at(name + ".weight") + tensors_.at(name + ".bias");
  }
  at::Tensor ByHead(const at::Tensor& rows) const { return rows.unflatten(1, {config_.heads, -1}).transpose(0, 1); }

  // Whether row i sees row j: [n, n], with 0 for yes and minus infinity for no.
  at::Tensor Mask(int64_t count) const {
    const int64_t w = config_.window_size, margin = std::max<int64_t>(w / 2, 1);
    std::vector<double> mask(count * count, -INFINITY);
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t j = 0; j < count; ++j) {
        bool sees = i == 0 || j == 0;
        if (w == 0) {
          sees |= i == j && config_.projection_rank == 0;
        } else {
          const int64_t segment = (i - 1) / w;
          sees |= segment * w - margin <= j - 1 && j - 1 < (segment + 1) * w + margin;
        }
        if (sees) mask[i * count + j] = 0;
      }
    }
    return at::tensor(mask).view({count, count});
  }

  at::Tensor Attend(const at::Tensor& rows, const std::string& mha) const {
    const int64_t count = rows.size(0), rank = config_.projection_rank, heads = config_.heads;
    const auto dual = [&](const at::Tensor& raw) {
      if (!config_.dual_norm) return raw;
      return at::cat({Norm(raw.narrow(0, 0, 1), mha + "dual_ln_s"), Norm(raw.slice(0, 1), mha + "dual_ln_l")});
    };
    at::Tensor keys = dual(Map(rows, mha + "W_k")), values = dual(Map(rows, mha + "W_v")), mask = Mask(count);
    if (rank > 0) {
      // [heads, rank, n - 1]
      const at::Tensor weights =
          Map(rows.slice(0, 1), mha + "dconv_fc").softmax(0).unflatten(1, {heads, rank}).permute({1, 2, 0});
      const auto landmarks = [&](const at::Tensor& all) {
        const at::Tensor mixed = at::matmul(weights, ByHead(all.slice(0, 1)));
        return Norm(mixed.transpose(0, 1).flatten(1), mha + "dual_ln_s");
      };
      const at::Tensor landmark_keys = landmarks(keys), landmark_values = landmarks(values);
      keys = at::cat({keys, landmark_keys});
      values = at::cat({values, landmark_values});
      at::Tensor sees_landmarks = at::zeros({count, rank}, at::kDouble);
      sees_landmarks[0] = -INFINITY;
      mask = at::cat({mask, sees_landmarks}, 1);
    }
    const double width = static_cast<double>(config_.model_width) / static_cast<double>(heads);
    const at::Tensor scores =
        at::matmul(ByHead(Map(rows, mha + "W_q")), ByHead(keys).transpose(1, 2)) / std::sqrt(width) + mask;
    return Map(at::matmul(scores.softmax(-1), ByHead(values)).transpose(0, 1).flatten(1), mha + "W_o");
  }

  const TextClassifierConfig config_;
  std::map<std::string, at::Tensor> tensors_;
};

std::unique_ptr<Classifier> Load(const TextClassifierConfig& config, int threads = 1) {
  const TemporaryDirectory directory;
  WriteTextModel(directory.path(), config, kSeed);
  return LoadTextClassifier(OpenModelDirectory(directory.path()).value(), {.threads = threads})
      .value()
      .NewReplica({})
      .value();
}

std::vector<float> Compute(Classifier& classifier, const std::vector<ClassifierItem>& items, ClassifierOutput output) {
  std::vector<const ClassifierItem*> pointers;
  for (const ClassifierItem& item : items) pointers.push_back(&item);
  const auto result = classifier.Run(pointers, output);
  EXPECT_THAT(result, IsOk());
  if (!result.ok()) return {};
  return {result->rows.begin(), result->rows.end()};
}

std::vector<float> Classify(Classifier& classifier, const std::vector<ClassifierItem>& items) {
  return Compute(classifier, items, ClassifierOutput::kLogits);
}

// <s>, random tokens without padding, </s>; shorter ones lose tokens at the end.
Ids Document(int64_t length, uint64_t seed) {
  std::mt19937_64 random(seed);
  Ids ids(length);
  for (int32_t& id : ids) id = 3 + static_cast<int32_t>(random() % 20);
  ids.back() = kSeparator;
  ids.front() = 0;
  return ids;
}

Ids WithPadding(const Ids& ids) {
  Ids padded = {kPadding};
  for (const int32_t id : ids) {
    if (padded.size() % 3 == 0) padded.insert(padded.end(), 2, kPadding);
    padded.push_back(id);
  }
  padded.push_back(kPadding);
  return padded;
}

void ExpectNear(const std::vector<float>& found, const at::Tensor& expected) {
  ASSERT_EQ(static_cast<int64_t>(found.size()), expected.numel());
  EXPECT_LT((at::tensor(found).to(at::kDouble) - expected.flatten()).abs().max().item<double>(), 1e-5);
}

void ExpectDocuments(const TextClassifierConfig& config, const std::vector<int64_t>& lengths) {
  SCOPED_TRACE(ToJson(config));
  const PlainEncoder plain(config);
  std::vector<ClassifierItem> items;
  std::vector<at::Tensor> expected;
  for (const int64_t length : lengths) {
    const Ids ids = Document(length, length);
    const Ids padded = WithPadding(ids);
    const bool fits = static_cast<int64_t>(padded.size()) <= config.MaxDocumentTokens();
    items.emplace_back(TokenItem{{length % 2 == 0 && fits ? padded : ids}});
    expected.push_back(plain.Logits(ids));
  }
  ExpectNear(Classify(*Load(config, /*threads=*/2), items), at::cat(expected));
}

TEST(LongDocumentEncoder, IsRobertaWithACoveringWindowAndNoLandmarks) {
  ExpectDocuments(Roberta(), {600, 1, 2, 3, 17, 64, 300, 599});
  TextClassifierConfig one_head = Roberta();
  one_head.heads = 1;
  one_head.layers = 1;
  one_head.feed_forward_width = 17;
  one_head.layer_norm_epsilon = 1e-12;
  ExpectDocuments(one_head, {600, 5});
}

TEST(LongDocumentEncoder, HasWindowsAndLandmarks) {
  ExpectDocuments(LongShort(/*window=*/16, /*rank=*/0), {1, 2, 40, 177});
  ExpectDocuments(LongShort(/*window=*/5, /*rank=*/1), {1, 2, 40, 177});
  ExpectDocuments(LongShort(/*window=*/8, /*rank=*/7), {1, 2, 3, 8, 9, 10, 600});
  ExpectDocuments(LongShort(/*window=*/0, /*rank=*/4), {1, 2, 30});
  ExpectDocuments(LongShort(/*window=*/0, /*rank=*/0), {1, 2, 30});
  TextClassifierConfig windows = Roberta();
  windows.window_size = 12;
  ExpectDocuments(windows, {1, 13, 100});
}

TEST(LongDocumentEncoder, HasEverySwitchOfTheFamily) {
  TextClassifierConfig before = LongShort(6, 3);
  before.layer_norm = LayerNormPlace::kBefore;
  before.head = HeadKind::kRelu;
  ExpectDocuments(before, {1, 2, 50});
  before.head = HeadKind::kTanh;
  before.tied_layers = true;
  ExpectDocuments(before, {1, 2, 50});
}

// Documents that are alone in a batch, so that no token but the first one has a row.
TEST(LongDocumentEncoder, ADocumentMayBeOneToken) {
  for (const TextClassifierConfig& config : {Roberta(), LongShort(8, 2), LongShort(0, 2)}) ExpectDocuments(config, {1});
}

TEST(LongDocumentEncoder, EmbedsWithAndWithoutAHead) {
  TextClassifierConfig config = LongShort(8, 2);
  for (const int64_t classes : {3, 0}) {
    config.classes = classes;
    const PlainEncoder plain(config);
    const auto classifier = Load(config);
    std::vector<ClassifierItem> items;
    std::vector<at::Tensor> first, mean;
    for (const int64_t length : {1, 2, 30}) {
      const Ids ids = Document(length, length);
      items.emplace_back(TokenItem{{WithPadding(ids)}});
      const at::Tensor rows = plain.Rows(ids);
      first.push_back(rows[0]);
      mean.push_back(rows.mean(0));
    }
    ExpectNear(Compute(*classifier, items, ClassifierOutput::kFeatures), at::cat(first));
    if (classes == 0) ExpectNear(Compute(*classifier, items, ClassifierOutput::kLogitsAndFeatures), at::cat(first));
    ExpectNear(Compute(*classifier, items, ClassifierOutput::kMeanOfTokens), at::cat(mean));
  }
}

TEST(LongDocumentEncoder, JoinsPairs) {
  for (const int64_t documents : {1, 2}) {
    TextClassifierConfig config = LongShort(8, 2);
    config.documents = documents;
    const PlainEncoder plain(config);
    const Ids first = Document(20, 1), second = Document(9, 2);
    Ids joined = first;
    joined.insert(joined.end(), second.begin(), second.end());
    joined[first.size()] = kSeparator;
    const auto classifier = Load(config);
    ExpectNear(Classify(*classifier, {TokenItem{{first, second}}, TokenItem{{first}},
                                      TokenItem{{WithPadding(first), WithPadding(second)}}}),
               at::cat({plain.Logits(joined), plain.Logits(first), plain.Logits(joined)}));
    ExpectNear(Compute(*classifier, {TokenItem{{first, second}}}, ClassifierOutput::kFeatures), plain.Rows(joined)[0]);
  }
}

TEST(LongDocumentEncoder, ManyMicroBatchesGiveEachItemWhatItGetsAlone) {
  const TextClassifierConfig config = LongShort(8, 3);
  std::vector<ClassifierItem> items;
  for (int64_t i = 0; i < 60; ++i) items.emplace_back(TokenItem{{Document(1 + i * 10, i)}});
  const auto classifier = Load(config, /*threads=*/2);
  const std::vector<float> together = Classify(*classifier, items);
  for (size_t i = 0; i < items.size(); ++i) {
    const std::vector<float> alone = Classify(*classifier, {items[i]});
    for (size_t c = 0; c < alone.size(); ++c) EXPECT_NEAR(together[i * alone.size() + c], alone[c], 1e-5);
  }
}

// Width 48, 3 layers; `<s>`, 8 tokens in segments of 4, w = 4. The last layer computes no query of a token.
TEST(LongDocumentEncoder, CountsTheMultiplyAdds) {
  const TextClassifierConfig config = LongShort(/*window=*/4, /*rank=*/2);
  const int64_t n = 8, d = 48, inner = 80;
  const int64_t window_pairs = 2 * 4 * 6;  // each segment sees the other's nearer half
  const int64_t finish = d * d + 2 * d * inner, cls = 2 * (n + 1) * d;
  const int64_t landmarks = n * 3 * 2 * d + 2 * n * 2 * d;  // the projection, and the mixing of keys and values
  const int64_t layer = (n + 1) * (3 * d * d + finish) + cls + landmarks + 2 * (window_pairs + n * (1 + 2)) * d;
  const int64_t last = 2 * (n + 1) * d * d + d * d + cls + finish;
  const ClassifierItem item = TokenItem{{Document(n + 1, 1)}};
  const auto result = Load(config)->Classify({&item});
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->counts.multiply_adds, 2 * layer + last + d * d + d * config.classes);
}

TEST(LongDocumentEncoder, RefusesItemsThatBreakTheContract) {
  TextClassifierConfig config = Roberta();
  config.max_document_tokens = 6;
  const auto classifier = Load(config);
  const auto refusal = [&](const ClassifierItem& item) { return classifier->Classify({&item}).status(); };
  EXPECT_THAT(refusal(TokenItem{{{0, 3, 2}, {0, 3, 2}}}), IsOk());
  EXPECT_THAT(refusal(TokenItem{{{0, 3, 2}, {0, 3, 3, 2}}}),
              Refuses(Words{"item 0", "token count is 7", "limit is 6"}));
  EXPECT_THAT(refusal(TokenItem{{{0, 3, 2}, {1, 1}}}), Refuses(Words{"document 1", "every token is 1"}));
  EXPECT_THAT(refusal(TokenItem{{{0}, {0}, {0}}}), Refuses(Words{"document count is 3", "1 to 2"}));
  EXPECT_THAT(refusal(TokenItem{}), Refuses(Words{"document count is 0"}));
}

TEST(LongDocumentEncoder, DescribesItself) {
  TextClassifierConfig config = Roberta();
  config.problem_type = ProblemType::kRegression;
  const auto classifier = Load(config);
  const ClassifierInfo& info = classifier->info();
  EXPECT_EQ(info.documents, 1);
  EXPECT_EQ(info.MaxDocuments(), 2);
  EXPECT_EQ(info.padding_id, kPadding);
  EXPECT_EQ(info.problem_type, ProblemType::kRegression);
}

TEST(LongDocumentEncoder, ClassifiesNothingWithoutAHead) {
  TextClassifierConfig config = Roberta();
  config.classes = 0;
  const ClassifierItem item = TokenItem{{Document(4, 1)}};
  EXPECT_EQ(Load(config)->Classify({&item}).status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace longshort::models::long_document_encoder_test
