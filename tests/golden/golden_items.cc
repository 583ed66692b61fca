#include "tests/golden/golden_items.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "models/weights/safetensors.h"
#include "tests/golden/golden_tensors.h"

namespace longshort {
namespace {

// Items without expectations, row by row of the batch.
absl::StatusOr<GoldenBatch> ReadDocuments(const models::SafetensorsFile& file) {
  GoldenBatch batch;
  for (int document = 0;; ++document) {
    const std::string name = absl::StrCat("input_ids_", document);
    if (document > 0 && file.Find(name) == nullptr) return batch;
    LS_ASSIGN_OR_RETURN(const Values<int64_t> ids, ReadValues<int64_t>(file, name, models::DataType::kI64, 2));
    if (document == 0) batch.resize(ids.shape[0], {models::TokenItem{}, {}});
    if (ids.shape[0] != static_cast<int64_t>(batch.size())) {
      return absl::InvalidArgumentError(absl::StrCat(file.name(), ": ", name, " has another batch than input_ids_0"));
    }
    for (size_t row = 0; row < batch.size(); ++row) {
      const auto first = ids.values.begin() + row * ids.shape[1];
      std::get<models::TokenItem>(batch[row].item).documents.emplace_back(first, first + ids.shape[1]);
    }
  }
}

absl::StatusOr<GoldenBatch> ReadImages(const models::SafetensorsFile& file, const std::string& name) {
  LS_ASSIGN_OR_RETURN(const Values<float> images, ReadValues<float>(file, name, models::DataType::kF32, 4));
  const int64_t height = images.shape[2], width = images.shape[3], size = images.shape[1] * height * width;
  GoldenBatch batch;
  for (int64_t row = 0; row < images.shape[0]; ++row) {
    const auto first = images.values.begin() + row * size;
    batch.push_back({models::ImageItem{.height = height, .width = width, .values = {first, first + size}}, {}});
  }
  return batch;
}

absl::StatusOr<GoldenBatch> WithExpected(absl::StatusOr<GoldenBatch> batch, const models::SafetensorsFile& file,
                                         const std::string& name) {
  if (!batch.ok()) return batch;
  LS_ASSIGN_OR_RETURN(const Values<float> logits, ReadValues<float>(file, name, models::DataType::kF32, 2));
  if (batch->empty() || logits.shape[0] != static_cast<int64_t>(batch->size())) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: %s has %d rows for %d items", file.name(), name, logits.shape[0], batch->size()));
  }
  for (size_t row = 0; row < batch->size(); ++row) {
    const auto first = logits.values.begin() + row * logits.shape[1];
    (*batch)[row].expected.assign(first, first + logits.shape[1]);
  }
  return batch;
}

void CutPaddingAtTheEnd(std::vector<int32_t>& ids, int32_t padding, std::mt19937_64& random) {
  const auto last = std::find_if(ids.rbegin(), ids.rend(), [&](int32_t id) { return id != padding; });
  const int64_t min = std::max<int64_t>(ids.rend() - last, 1);
  ids.resize(std::uniform_int_distribution<int64_t>(min, static_cast<int64_t>(ids.size()))(random));
}

}  // namespace

absl::StatusOr<std::vector<GoldenBatch>> ReadGoldenBatches(const std::string& path, const std::string& output) {
  LS_ASSIGN_OR_RETURN(const models::SafetensorsFile file, models::SafetensorsFile::Open(path));
  std::vector<GoldenBatch> batches;
  const bool documents = file.Find("input_ids_0") != nullptr;
  if (file.Find(output) == nullptr && (output != "logits" || documents)) return batches;
  if (file.Find("images.0") != nullptr) {
    for (int index = 0; file.Find(absl::StrCat("images.", index)) != nullptr; ++index) {
      LS_ASSIGN_OR_RETURN(GoldenBatch batch, WithExpected(ReadImages(file, absl::StrCat("images.", index)), file,
                                                          absl::StrCat("logits.", index)));
      batches.push_back(std::move(batch));
    }
    return batches;
  }
  const std::string images = file.Find("images") != nullptr ? "images" : "input";
  LS_ASSIGN_OR_RETURN(GoldenBatch batch,
                      WithExpected(documents ? ReadDocuments(file) : ReadImages(file, images), file, output));
  batches.push_back(std::move(batch));
  return batches;
}

GoldenBatch ShuffledMix(const GoldenBatch& batch, int64_t copies, int32_t padding, std::mt19937_64& random) {
  GoldenBatch mix = batch;
  for (int64_t copy = 1; copy < copies; ++copy) {
    for (GoldenItem item : batch) {
      if (auto* tokens = std::get_if<models::TokenItem>(&item.item)) {
        for (std::vector<int32_t>& ids : tokens->documents) CutPaddingAtTheEnd(ids, padding, random);
      }
      mix.push_back(std::move(item));
    }
  }
  // GCC 12 takes an item that std::shuffle swaps for one that is not initialised.
  std::vector<size_t> order(mix.size());
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  GoldenBatch shuffled;
  for (const size_t index : order) shuffled.push_back(std::move(mix[index]));
  return shuffled;
}

}  // namespace longshort
