// A file of a classifier's golden case: the items and their expected results.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/classifier.h"

namespace longshort {

struct GoldenItem {
  models::ClassifierItem item;
  std::vector<float> expected;  // a row of the output
};

// Items that may be one batch: images of one size, documents of any lengths.
using GoldenBatch = std::vector<GoldenItem>;

// Reads the batches of a file with the expected rows of `output`, [batch, width]: "logits", or for documents also
// another tensor. Empty if the file has no such other tensor. The file holds one of
//   input_ids_0 [batch, L] int64 (and input_ids_1 for a second document), logits [batch, classes]: documents with the
//     ids that they are padded with, and some of these inside;
//   input [batch, channels, height, width], logits, or the same under the name images: normalised images;
//   images.0, logits.0, images.1, logits.1, ...: the same in several sizes.
// Errors: INVALID_ARGUMENT naming the tensor that is missing or has another type or shape; those of
// SafetensorsFile::Open.
absl::StatusOr<std::vector<GoldenBatch>> ReadGoldenBatches(const std::string& path, const std::string& output);

// Every item `copies` times, in random order. Of documents, the padding at the end is cut at a random place in each
// copy but the first: no result may depend on it. One id stays at least.
GoldenBatch ShuffledMix(const GoldenBatch& batch, int64_t copies, int32_t padding, std::mt19937_64& random);

}  // namespace longshort
