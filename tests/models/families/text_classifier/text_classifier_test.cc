#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <regex>
#include <string>
#include <vector>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/families/text_classifier/text_network.h"
#include "models/ops/item_attention/item_attention.h"
#include "models/ops/products/packed_matrix.h"
#include "models/ops/rows/cpu_kernels.h"
#include "tests/base/status_matchers.h"
#include "tests/base/temporary_directory.h"
#include "tests/models/families/text_classifier/random_text_model.h"

namespace longshort::models::text_classifier_test {

using Words = std::vector<std::string>;
using Document = std::vector<int32_t>;

std::unique_ptr<Classifier> Load(const TextClassifierConfig& config, uint64_t seed = 1, int threads = 1) {
  const TemporaryDirectory directory;
  WriteTextModel(directory.path(), config, seed);
  const auto opened = OpenModelDirectory(directory.path());
  EXPECT_THAT(opened, IsOk());
  return LoadTextClassifier(*opened, {.threads = threads}).value().NewReplica({}).value();
}

struct Answer {
  std::vector<float> rows;
  int64_t multiply_adds = 0;
};

Answer Compute(Classifier& classifier, const std::vector<TokenItem>& items, ClassifierOutput output) {
  const std::vector<ClassifierItem> held(items.begin(), items.end());
  std::vector<const ClassifierItem*> pointers;
  for (const ClassifierItem& item : held) pointers.push_back(&item);
  const auto result = classifier.Run(pointers, output);
  EXPECT_THAT(result, IsOk());
  if (!result.ok()) return {};
  return {{result->rows.begin(), result->rows.end()}, result->counts.multiply_adds};
}
Answer Classify(Classifier& classifier, const std::vector<TokenItem>& items) {
  return Compute(classifier, items, ClassifierOutput::kLogits);
}

double LargestDifference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double difference = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    largest = std::isnan(difference) ? INFINITY : std::max(largest, difference);
  }
  return largest;
}

// Every switch, alone and with others.
std::vector<TextClassifierConfig> Configurations() {
  std::vector<TextClassifierConfig> configs(12, SmallTextConfig());
  configs[1].cls = ClsKind::kNone;
  configs[2].cls = ClsKind::kVocabulary;
  configs[3].cls = ClsKind::kAllLayers;
  configs[3].tied_layers = true;
  configs[3].layers = 3;
  configs[4].normalized_cls = true;
  configs[5].projection_rank = 0;
  configs[6].window_size = 0;
  configs[7].window_size = 0;
  configs[7].projection_rank = 0;
  configs[7].cls = ClsKind::kAllLayers;
  configs[8].window_size = 5;
  configs[8].value_convolution = 3;
  configs[8].cls = ClsKind::kNone;
  configs[9].window_size = 1;
  configs[9].projection_rank = 50;
  configs[10].documents = 2;
  configs[11].documents = 2;
  configs[11].cls = ClsKind::kNone;
  configs[11].projection_rank = 0;
  configs[11].value_convolution = 7;
  return configs;
}

// Items of any lengths, a sixth of the tokens masked.
std::vector<TokenItem> RandomItems(const TextClassifierConfig& config, int64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<TokenItem> items(count);
  for (TokenItem& item : items) {
    item.documents.resize(config.documents);
    for (Document& document : item.documents) {
      document.resize(1 + random() % config.MaxDocumentTokens());
      for (int32_t& id : document) id = random() % 6 == 0 ? 0 : static_cast<int32_t>(random() % config.vocabulary_size);
      document.back() = 1;
    }
  }
  return items;
}

TEST(TextClassifier, ABatchGivesEachItemWhatItGetsAlone) {
  for (const TextClassifierConfig& config : Configurations()) {
    SCOPED_TRACE(ToJson(config));
    const auto classifier = Load(config);
    const std::vector<TokenItem> items = RandomItems(config, 7, 5);
    const Answer together = Classify(*classifier, items);
    Answer alone;
    for (const TokenItem& item : items) {
      const Answer one = Classify(*classifier, {item});
      alone.rows.insert(alone.rows.end(), one.rows.begin(), one.rows.end());
      alone.multiply_adds += one.multiply_adds;
    }
    EXPECT_LT(LargestDifference(together.rows, alone.rows), 1e-5);
    EXPECT_EQ(together.multiply_adds, alone.multiply_adds);
    for (size_t i = 1; i < items.size(); ++i) EXPECT_NE(together.rows[i * 3], together.rows[0]);
  }
}

// Documents of 1 to 4,000 tokens, 80,000 in all: a dozen micro-batches, on one thread and on several.
TEST(TextClassifier, ABatchOfManyMicroBatchesGivesEachItemWhatItGetsAlone) {
  for (const int64_t documents : {1, 2}) {
    TextClassifierConfig config = SmallTextConfig();
    config.documents = documents;
    config.max_sequence_length = 4000;
    const std::vector<TokenItem> items = RandomItems(config, 40 / documents, 7);
    const auto on_one_thread = Load(config);
    Answer alone;
    for (const TokenItem& item : items) {
      const Answer one = Classify(*on_one_thread, {item});
      alone.rows.insert(alone.rows.end(), one.rows.begin(), one.rows.end());
      alone.multiply_adds += one.multiply_adds;
    }
    for (const int threads : {1, 2, 3}) {
      SCOPED_TRACE(threads);
      const auto classifier = Load(config, 1, threads);
      const Answer together = Classify(*classifier, items);
      EXPECT_LT(LargestDifference(together.rows, alone.rows), 1e-5);
      EXPECT_EQ(together.multiply_adds, alone.multiply_adds);
    }
  }
}

// An embedding is of one document.
std::vector<TokenItem> SingleDocuments(const std::vector<TokenItem>& items) {
  std::vector<TokenItem> documents;
  for (const TokenItem& item : items) {
    for (const Document& document : item.documents) documents.push_back({{document}});
  }
  return documents;
}

TextNetwork NetworkOf(const TextClassifierConfig& config, uint64_t seed = 1) {
  const auto tensors = RandomTextTensors(config, seed);
  return MakeTextNetwork(config, [&](const std::string& name) { return tensors.at(name); });
}

TEST(TextClassifier, TheHeadOfTheFeaturesGivesTheLogits) {
  for (const TextClassifierConfig& config : Configurations()) {
    SCOPED_TRACE(ToJson(config));
    const auto classifier = Load(config);
    const std::vector<TokenItem> items = RandomItems(config, 7, 5);
    const Answer features = Compute(*classifier, SingleDocuments(items), ClassifierOutput::kFeatures);
    const TextNetwork network = NetworkOf(config);
    at::Tensor rows = at::tensor(features.rows).view({7 * config.documents, config.model_width});
    if (config.documents == 2) {
      const at::Tensor first = rows.slice(0, 0, std::nullopt, 2), second = rows.slice(0, 1, std::nullopt, 2);
      rows = at::cat({first, second, first * second, first - second}, 1);
    }
    const at::Tensor logits = network.head_out(at::relu(network.head_in(rows))).contiguous();
    const float* const values = logits.const_data_ptr<float>();
    const Answer expected = Classify(*classifier, items);
    EXPECT_LT(LargestDifference({values, values + logits.numel()}, expected.rows), 1e-5);
    const Answer both = Compute(*classifier, items, ClassifierOutput::kLogitsAndFeatures);
    EXPECT_EQ(both.multiply_adds, expected.multiply_adds);
    ASSERT_EQ(both.rows.size(), expected.rows.size() + features.rows.size());
    const int64_t width = config.documents * config.model_width;
    for (int64_t item = 0; item < 7; ++item) {
      const auto row = both.rows.begin() + item * (3 + width);
      EXPECT_LT(LargestDifference({row, row + 3}, {&expected.rows[3 * item], &expected.rows[3 * item] + 3}), 1e-5);
      const float* const first = &features.rows[item * width];
      EXPECT_LT(LargestDifference({row + 3, row + 3 + width}, {first, first + width}), 1e-5);
    }
    EXPECT_EQ(features.multiply_adds + 7 * (network.head_in.weight.numel() + network.head_out.weight.numel()),
              expected.multiply_adds);
  }
}

// The rows of one document after the last layer, [rows, D].
at::Tensor LastRows(const TextNetwork& network, const Document& ids) {
  const TextClassifierConfig& config = network.config;
  const auto packed = std::make_shared<PackedDocuments>(network.Pack({ids}));
  const DocumentTokens document = TokensOf(*packed);
  CpuItemAttention attention(packed);
  const bool in_vocabulary = config.cls == ClsKind::kVocabulary;
  HiddenRows hidden = {.all = network.word_embeddings.index_select(0, document.ids) +
                              network.position_embeddings.index_select(0, document.positions + (in_vocabulary ? 1 : 0)),
                       .cls_rows = 0};
  const auto add_cls = [&hidden](const at::Tensor& row) {
    hidden = {.all = at::cat({row.view({1, -1}), hidden.all}), .cls_rows = 1};
  };
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    if (layer == 0 && in_vocabulary) add_cls(network.word_embeddings[-1] + network.position_embeddings[0]);
    if (layer == (config.cls == ClsKind::kLastLayer ? config.layers - 1 : 0) && network.cls.defined())
      add_cls(network.cls);
    hidden = network.layers[layer](hidden, 1, attention, /*cls_only=*/false);
  }
  return network.norm(hidden.tokens());
}

TEST(TextClassifier, TheMeanOfTokensIsThatOfTheLastLayersRowsWithoutMaskedOnes) {
  for (const TextClassifierConfig& config : Configurations()) {
    SCOPED_TRACE(ToJson(config));
    const std::vector<TokenItem> documents = SingleDocuments(RandomItems(config, 7, 5));
    const Answer found = Compute(*Load(config), documents, ClassifierOutput::kMeanOfTokens);
    const TextNetwork network = NetworkOf(config);
    Answer expected;
    for (const TokenItem& item : documents) {
      const at::Tensor rows = LastRows(network, item.documents[0]);
      EXPECT_EQ(rows.size(0),
                std::count_if(item.documents[0].begin(), item.documents[0].end(), [](int32_t id) { return id != 0; }));
      const at::Tensor mean = rows.to(at::kDouble).mean(0).to(at::kFloat);
      expected.rows.insert(expected.rows.end(), mean.const_data_ptr<float>(),
                           mean.const_data_ptr<float>() + mean.numel());
    }
    EXPECT_LT(LargestDifference(found.rows, expected.rows), 1e-5);
  }
}

TEST(TextClassifier, ABatchEmbedsEachDocumentAsAlone) {
  TextClassifierConfig config = SmallTextConfig();
  config.max_sequence_length = 4000;
  const std::vector<TokenItem> documents = RandomItems(config, 40, 7);
  const auto alone = Load(config);
  for (const ClassifierOutput output : {ClassifierOutput::kFeatures, ClassifierOutput::kMeanOfTokens}) {
    Answer expected;
    for (const TokenItem& document : documents) {
      const Answer one = Compute(*alone, {document}, output);
      expected.rows.insert(expected.rows.end(), one.rows.begin(), one.rows.end());
      expected.multiply_adds += one.multiply_adds;
    }
    for (const int threads : {1, 2, 3}) {
      SCOPED_TRACE(threads);
      const Answer together = Compute(*Load(config, 1, threads), documents, output);
      EXPECT_LT(LargestDifference(together.rows, expected.rows), 1e-5);
      EXPECT_EQ(together.multiply_adds, expected.multiply_adds);
    }
  }
}

TEST(TextClassifier, PaddingAfterADocumentChangesNothingAndCostsNothing) {
  for (const TextClassifierConfig& config : Configurations()) {
    SCOPED_TRACE(ToJson(config));
    const auto classifier = Load(config);
    std::vector<TokenItem> items = RandomItems(config, 3, 6);
    const Answer bare = Classify(*classifier, items);
    for (TokenItem& item : items) {
      for (Document& document : item.documents) document.resize(config.MaxDocumentTokens());
    }
    const Answer padded = Classify(*classifier, items);
    EXPECT_EQ(padded.rows, bare.rows);
    EXPECT_EQ(padded.multiply_adds, bare.multiply_adds);
  }
}

TEST(TextClassifier, MaskedTokensKeepTheirPlaces) {
  for (const TextClassifierConfig& config : Configurations()) {
    if (config.documents == 2) continue;
    SCOPED_TRACE(ToJson(config));
    const auto classifier = Load(config);
    const Answer gap = Classify(*classifier, {{{{5, 0, 0, 0, 0, 0, 6, 7}}}});
    const Answer joined = Classify(*classifier, {{{{5, 6, 7}}}});
    EXPECT_TRUE(std::all_of(gap.rows.begin(), gap.rows.end(), [](float x) { return std::isfinite(x); }));
    EXPECT_GT(LargestDifference(gap.rows, joined.rows), 1e-4);
  }
}

// Width 16, feed-forward 20, w 4, r 3, 3 classes, the CLS row in the last of 2 layers; 5 tokens in segments of 4 and 1.
TEST(TextClassifier, CountsTheMultiplyAddsOfTheTokens) {
  const auto classifier = Load(SmallTextConfig());
  const int64_t n = 5, d = 16, inner = 20, landmarks = 2 * 3 * d;  // of all heads
  const int64_t window_pairs = 4 * 5 + 1 * 3;  // segment 0 sees all 5, segment 1 the 2 before it and itself
  const int64_t mixing = 2 * n * 3 * d;        // landmarks of keys and of values
  const int64_t first =
      n * (3 * d * d + landmarks) + mixing + 2 * (window_pairs + n * 3) * d + n * (d * d + 2 * d * inner);
  // CLS is one row more before attention, one vector more in it, and the only row after it.
  const int64_t last = (n + 1) * 3 * d * d + n * landmarks + mixing + 2 * (window_pairs + n * 4) * d + 2 * (n + 1) * d +
                       d * d + 2 * d * inner;
  const int64_t head = d * inner + inner * 3;
  EXPECT_EQ(Classify(*classifier, {{{{1, 2, 3, 4, 5}}}}).multiply_adds, first + last + head);
}

TEST(TextClassifier, TheMeanIsOverThePooledLength) {
  TextClassifierConfig config = SmallTextConfig();
  config.cls = ClsKind::kNone;
  const auto whole = Load(config);  // 40 positions
  config.pooled_length = 20;
  const auto half = Load(config);
  config.pooled_length = 40;
  const std::vector<TokenItem> items = {{{{5, 6, 7}}}};
  EXPECT_EQ(Classify(*Load(config), items).rows, Classify(*whole, items).rows);
  EXPECT_GT(LargestDifference(Classify(*half, items).rows, Classify(*whole, items).rows), 1e-4);
}

TEST(TextClassifier, TiedLayersAreLayersWithEqualWeights) {
  TextClassifierConfig tied = SmallTextConfig();
  tied.tied_layers = true;
  tied.layers = 3;
  TextClassifierConfig untied = tied;
  untied.tied_layers = false;
  EXPECT_LT(Load(tied)->info().parameters, Load(untied)->info().parameters);
  const std::map<std::string, at::Tensor> tensors = RandomTextTensors(tied, 1);
  const auto read = [&](const std::string& name) {
    return tensors.at(std::regex_replace(name, std::regex("^model[.]transformer_[0-9]+"), "model.transformer"));
  };
  const auto logits = [&](const TextClassifierConfig& config) {
    const TextNetwork network = MakeTextNetwork(config, read);
    const Document document = {5, 6, 7};
    const absl::Span<const int32_t> documents[] = {document};
    return network.Logits(std::make_shared<PackedDocuments>(network.Pack(documents)));
  };
  EXPECT_TRUE(at::equal(logits(tied), logits(untied)));
  tied.layers = 2;
  EXPECT_FALSE(at::equal(logits(tied), logits(untied)));
}

TEST(TextClassifier, RefusesItemsThatBreakTheContractAndNamesThem) {
  TextClassifierConfig config = SmallTextConfig();
  config.max_document_tokens = 6;
  const auto classifier = Load(config);
  const auto refusal = [&](const ClassifierItem& item) {
    const ClassifierItem good = TokenItem{{{1, 2}}};
    const std::vector<const ClassifierItem*> items = {&good, &item};
    return classifier->Classify(items).status();
  };
  EXPECT_THAT(refusal(TokenItem{{{}}}), Refuses(Words{"item 1", "document 0", "is empty"}));
  EXPECT_THAT(refusal(TokenItem{{{0, 0}}}), Refuses(Words{"item 1", "document 0", "only padding"}));
  EXPECT_THAT(refusal(TokenItem{{{1, 23}}}), Refuses(Words{"item 1", "token 1 is 23", "0..22"}));
  EXPECT_THAT(refusal(TokenItem{{{-1}}}), Refuses(Words{"item 1", "token 0 is -1"}));
  EXPECT_THAT(refusal(TokenItem{{Document(7, 1)}}), Refuses(Words{"item 1", "token count is 7", "limit is 6"}));
  EXPECT_THAT(refusal(TokenItem{{{1}, {2}}}), Refuses(Words{"item 1", "document count is 2", "must be 1"}));
  EXPECT_THAT(refusal(ImageItem{}), Refuses(Words{"item 1", "image"}));
  EXPECT_THAT(classifier->Classify({}), Refuses(Words{"at least 1 item"}));
}

class LoadTextClassifierTest : public ::testing::Test {
 protected:
  LoadTextClassifierTest() { WriteTextModel(directory_.path(), config_, 1); }

  void WriteConfig() { directory_.Write("config.json", ToJson(config_)); }
  ModelDirectory Open() {
    auto opened = OpenModelDirectory(directory_.path());
    EXPECT_THAT(opened, IsOk());
    return *std::move(opened);
  }

  TemporaryDirectory directory_;
  TextClassifierConfig config_ = SmallTextConfig();
};

TEST_F(LoadTextClassifierTest, RefusesWeightsThatAreCutWhileTheyAreRead) {
  const ModelDirectory opened = Open();
  std::filesystem::resize_file(opened.path + "/model.safetensors",
                               std::filesystem::file_size(opened.path + "/model.safetensors") - 4);
  EXPECT_EQ(LoadTextClassifier(opened, {}).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(LoadTextClassifierTest, DescribesTheModel) {
  directory_.Write("labels.txt", "yes\nno\nperhaps\n");
  const auto classifier = LoadTextClassifier(Open(), {});
  ASSERT_THAT(classifier, IsOk());
  const ClassifierInfo& info = classifier->info();
  EXPECT_EQ(info.architecture, "text_classifier");
  EXPECT_EQ(info.input, ClassifierInput::kText);
  EXPECT_EQ(info.tokenizer, "none");
  EXPECT_EQ(info.classes, 3);
  EXPECT_THAT(info.labels, ::testing::ElementsAre("yes", "no", "perhaps"));
  EXPECT_EQ(info.documents, 1);
  EXPECT_EQ(info.vocabulary_size, 23);
  EXPECT_EQ(info.max_document_tokens, 40);
  EXPECT_EQ(info.precision, "fp32");
  EXPECT_EQ(info.fingerprint.size(), 64u);
}

TEST_F(LoadTextClassifierTest, WideLayersComputeInWhatTheProcessorIsFastInAndSmallOnesInFloat32) {
  const TemporaryDirectory directory;
  TextClassifierConfig wide = SmallTextConfig();
  wide.feed_forward_width = 40000;
  WriteTextModel(directory.path(), wide, /*seed=*/1);
  const auto precision_of = [&](const std::string& asked) {
    const LoadOptions options = {.precision = asked};
    EXPECT_EQ(LoadTextClassifier(Open(), options)->info().precision, "fp32");
    return LoadTextClassifier(OpenModelDirectory(directory.path()).value(), options)->info().precision;
  };
  EXPECT_EQ(precision_of("bf16"), HasBFloat16Tiles() ? "bf16" : "fp32");
  EXPECT_EQ(precision_of("int8"), HasBFloat16Tiles() ? "bf16" : cpu::HasInt8DotProducts() ? "int8" : "fp32");
}

TEST_F(LoadTextClassifierTest, NamesWhatDoesNotFitTheConfig) {
  directory_.Write("labels.txt", "yes\nno\n");
  EXPECT_THAT(LoadTextClassifier(Open(), {}), Refuses(Words{"labels.txt", "2 labels", "3 classes"}));
  config_.layers = 3;
  WriteConfig();
  EXPECT_THAT(LoadTextClassifier(Open(), {}), Refuses(Words{"model.transformer_2.", "is missing"}));
  config_ = SmallTextConfig();
  config_.projection_rank = 0;
  WriteConfig();
  EXPECT_THAT(LoadTextClassifier(Open(), {}), Refuses(Words{"mha.dconv_fc", "is unknown"}));
  config_ = SmallTextConfig();
  config_.documents = 2;
  WriteConfig();
  EXPECT_THAT(LoadTextClassifier(Open(), {}), Refuses(Words{"seq_classifer.mlpblock.0.weight", "[20,64]"}));
}

TEST_F(LoadTextClassifierTest, TheTokenizerAndTheVocabularyBelongTogether) {
  EXPECT_EQ(*LoadDocumentTokenizer(Open()), nullptr);
  config_.tokenizer = DocumentTokenizerKind::kListOps2021;
  WriteConfig();
  EXPECT_THAT(LoadDocumentTokenizer(Open()), Refuses(Words{"vocabulary.txt", "missing"}));
  directory_.Write("vocabulary.txt", "X\n1\n");
  const auto listops = LoadDocumentTokenizer(Open());
  ASSERT_THAT(listops, IsOk());
  EXPECT_THAT(*(*listops)->Encode("( 1 ] )"), ::testing::ElementsAre(2, 1));
  config_.tokenizer = DocumentTokenizerKind::kBytesPlusOne;
  config_.vocabulary_size = 257;
  WriteConfig();
  EXPECT_THAT(LoadDocumentTokenizer(Open()), Refuses(Words{"vocabulary.txt", "does not read it"}));
  config_.tokenizer = DocumentTokenizerKind::kByteLevelBpe;
  WriteConfig();
  EXPECT_THAT(LoadDocumentTokenizer(Open()), Refuses(Words{"vocabulary.txt", "does not read it"}));
  std::filesystem::remove(directory_.File("vocabulary.txt"));
  EXPECT_THAT(LoadDocumentTokenizer(Open()), Refuses(Words{"tokenizer.json", "missing"}));
  directory_.Write("tokenizer.json", "{}");
  EXPECT_THAT(LoadDocumentTokenizer(Open()), Refuses(Words{"tokenizer.json", "pre_tokenizer"}));
}

}  // namespace longshort::models::text_classifier_test
