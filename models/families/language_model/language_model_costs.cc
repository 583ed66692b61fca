#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "models/families/language_model/language_model_config.h"

namespace longshort::models {
namespace {

// A layer's work for the token that sees most: a full window, and all chunks of the memory and of its segment except
// its own. Position tables are computed during loading.
StageCost LayerCost(const LanguageModelConfig& config) {
  const int64_t width = config.model_width, rank = config.chunk_rank, chunk = config.chunk_size;
  const int64_t vectors = ((config.memory_length + config.segment_length) / chunk - 1) * rank;
  StageCost cost;
  cost.multiply_adds = 4 * width * width;                              // query, key, value, output
  cost.multiply_adds += 2 * width * config.feed_forward_width;         // fc1 and fc2
  cost.multiply_adds += width * config.heads * rank;                   // dconv_1
  cost.multiply_adds += 3 * (config.window_length + vectors) * width;  // scores by content and position, weighted sum
  // A chunk is compressed once in each form: its keys and values are mixed, and its inputs are mixed, then projected.
  // This is a token's share.
  const int64_t projected = 2 * rank * width * width / chunk, normed = 4 * rank * width / chunk;
  cost.multiply_adds += 3 * rank * width + projected;
  cost.normed_elements = 2 * width + 2 * width + normed;  // norm1, norm2, dual_ln_win, dual_ln_dproj
  return cost;
}

// Number of elements in a stream's cache, in all layers: keys and values of the window and of the compressed chunks.
int64_t CachedNumbers(const LanguageModelConfig& config) {
  const int64_t vectors = (config.memory_length + config.segment_length) / config.chunk_size * config.chunk_rank;
  return config.layers * 2 * config.model_width * (config.window_length + vectors);
}

// The open chunk: input, key, value and projection of every token.
int64_t OpenChunkBytes(const LanguageModelConfig& config) {
  const int64_t row = 3 * config.model_width + config.heads * config.chunk_rank;
  return config.layers * config.chunk_size * row * static_cast<int64_t>(sizeof(float));
}

}  // namespace

ModelDescription Describe(const LanguageModelConfig& config) {
  ModelDescription description;
  description.architecture = "language_model";
  description.item = absl::StrFormat("one token after a window of %d and a memory of %d tokens", config.window_length,
                                     config.memory_length);
  description.cached_numbers = CachedNumbers(config);
  description.open_chunk_bytes = OpenChunkBytes(config);
  description.stages.push_back({.name = "embedding"});
  std::vector<std::pair<std::string, size_t>> prefixes = {{"in_emb.", 0}};
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    prefixes.emplace_back(absl::StrCat("layers.", layer, "."), description.stages.size());
    StageCost cost = LayerCost(config);
    cost.name = absl::StrCat("layer ", layer + 1);
    cost.tokens = 1;
    cost.width = config.model_width;
    description.stages.push_back(cost);
  }
  // The output embedding is the input embedding.
  description.stages.push_back(
      {.name = "output", .multiply_adds = static_cast<double>(config.vocabulary_size * config.model_width)});
  AddParameters(LanguageModelTensors(config), prefixes, description.stages);
  return description;
}

namespace language_model {

FamilyConfig Config() {
  return {.architecture = "language_model",
          .describe = ParseAndDescribe<ParseLanguageModelConfig>,
          .sections = {{"Language model", "field", "The autoregressive Transformer-LS. Lengths are in tokens.",
                        LanguageModelFields()}}};
}

}  // namespace language_model
}  // namespace longshort::models
