#include "models/classifiers/served_text_classifier.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "c10/core/InferenceMode.h"
#include "models/layers/library_error.h"
#include "models/layers/library_threads.h"

namespace longshort {
namespace {

// Documents are packed up to tensors of so many bytes, of which some stand in a core's cache together.
constexpr int64_t kMostTensorBytes = 512 << 10;
constexpr int64_t kLeastTensorBytes = kMostTensorBytes / 4;

MicroBatchWork TokensOfMicroBatch(const TextClassifierConfig& config) {
  const int64_t row_bytes =
      static_cast<int64_t>(sizeof(float)) * std::max(config.model_width, config.feed_forward_width);
  const auto rows = [&](int64_t bytes) { return std::max<int64_t>(bytes / row_bytes, 1); };
  return {.least = rows(kLeastTensorBytes), .most = rows(kMostTensorBytes)};
}

}  // namespace

absl::StatusOr<std::unique_ptr<ServedTextClassifier>> ServedTextClassifier::Create(
    ClassifierInfo info, PlacedNetworks<TextNetwork> networks, const PlacedNetworks<TextNetwork>::Place& place,
    const GpuBackends* gpus) {
  const TextClassifierConfig& config = place.network->config;
  LS_ASSIGN_OR_RETURN(std::unique_ptr<ItemAttention> attention,
                      MakeItemAttention(gpus, place.device, config.model_width / config.heads));
  return std::unique_ptr<ServedTextClassifier>(
      new ServedTextClassifier(std::move(info), std::move(networks), place, gpus, std::move(attention)));
}

ServedTextClassifier::ServedTextClassifier(ClassifierInfo info, PlacedNetworks<TextNetwork> networks,
                                           const PlacedNetworks<TextNetwork>::Place& place, const GpuBackends* gpus,
                                           std::unique_ptr<ItemAttention> attention)
    : info_(std::move(info)),
      networks_(std::move(networks)),
      network_(place.network),
      gpus_(gpus),
      attention_(std::move(attention)),
      layers_([network = network_.get(), attention = attention_.get()](const ItemAttention::Documents& documents) {
        return network->Logits({.ids = documents.ids,
                                .positions = documents.positions,
                                .documents = documents.count,
                                .attention = attention});
      }),
      micro_batch_work_(TokensOfMicroBatch(network_->config)),
      runner_(place.device.threads) {}

absl::StatusOr<std::unique_ptr<Classifier>> ServedTextClassifier::Replicate(const WorkerDevice& device) const {
  LS_ASSIGN_OR_RETURN(const PlacedNetworks<TextNetwork>::Place place, networks_.On(device));
  try {
    LS_ASSIGN_OR_RETURN(std::unique_ptr<ServedTextClassifier> replica, Create(info_, networks_, place, gpus_));
    if (replica->attention_ != nullptr) {
      LS_RETURN_IF_ERROR(replica->attention_->PrepareDocuments(info_.documents, replica->layers_));
    }
    return replica;
  } catch (const std::exception& error) {
    return LibraryError("to make a replica of the model", error);
  }
}

absl::StatusOr<ClassifierResult> ServedTextClassifier::Classify(absl::Span<const ClassifierItem* const> items) {
  if (items.empty()) return absl::InvalidArgumentError("a batch needs at least 1 item");
  std::vector<absl::Span<const int32_t>> documents;
  std::vector<int64_t> tokens(items.size());
  for (size_t index = 0; index < items.size(); ++index) {
    LS_RETURN_IF_ERROR(CheckItem(*items[index], index));
    for (const auto& document : std::get<TokenItem>(*items[index]).documents) {
      documents.emplace_back(document);
      tokens[index] += static_cast<int64_t>(document.size());
    }
  }
  try {
    if (attention_ == nullptr) return ClassifyOnCpu(documents, tokens);
    const c10::InferenceMode inference;
    const PackedDocuments packed = network_->Pack(documents);
    return ClassifierResult{.logits = attention_->RunDocuments(packed, layers_),
                            .counts = {.multiply_adds = network_->MultiplyAdds(packed)}};
  } catch (const std::exception& error) {
    return LibraryError(absl::StrCat("on a batch of ", items.size(), " items"), error);
  }
}

ClassifierResult ServedTextClassifier::ClassifyOnCpu(absl::Span<const absl::Span<const int32_t>> documents,
                                                     absl::Span<const int64_t> item_tokens) {
  logits_.resize(item_tokens.size() * info_.classes);
  kept_memory_.Use();
  const int64_t multiply_adds = runner_.Run(item_tokens, micro_batch_work_, [&](const MicroBatch& batch) {
    const c10::InferenceMode inference;  // of this thread
    const auto packed = std::make_shared<const PackedDocuments>(
        network_->Pack(documents.subspan(batch.first_item * info_.documents, batch.items * info_.documents)));
    const at::Tensor logits = network_->Logits(MakeDocumentBatch(packed));
    std::copy_n(logits.const_data_ptr<float>(), logits.numel(), &logits_[batch.first_item * info_.classes]);
    return network_->MultiplyAdds(*packed);
  });
  return {.logits = logits_, .counts = {.multiply_adds = multiply_adds}};
}

void ServedTextClassifier::Rest() {
  GiveBackThreads();
  kept_memory_.Rest();
}

absl::Status ServedTextClassifier::CheckItem(const ClassifierItem& item, size_t index) const {
  const std::string name = absl::StrCat("item ", index);
  const auto* const tokens = std::get_if<TokenItem>(&item);
  if (tokens == nullptr)
    return absl::InvalidArgumentError(absl::StrCat(name, " is an image; the model takes token sequences"));
  if (static_cast<int64_t>(tokens->documents.size()) != info_.documents) {
    return absl::InvalidArgumentError(absl::StrFormat("%s: document count is %d, the model takes %d", name,
                                                      tokens->documents.size(), info_.documents));
  }
  for (size_t number = 0; number < tokens->documents.size(); ++number) {
    LS_RETURN_IF_ERROR(CheckDocument(tokens->documents[number], absl::StrCat(name, ": document ", number)));
  }
  return absl::OkStatus();
}

absl::Status ServedTextClassifier::CheckDocument(const std::vector<int32_t>& ids, const std::string& name) const {
  const auto size = static_cast<int64_t>(ids.size());
  if (size > info_.max_document_tokens) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: token count is %d, the limit is %d", name, size, info_.max_document_tokens));
  }
  const auto wrong =
      std::find_if(ids.begin(), ids.end(), [this](int32_t id) { return id < 0 || id >= info_.vocabulary_size; });
  if (wrong != ids.end()) {
    return absl::InvalidArgumentError(absl::StrFormat("%s: token %d is %d, it must lie in 0..%d", name,
                                                      wrong - ids.begin(), *wrong, info_.vocabulary_size - 1));
  }
  if (std::all_of(ids.begin(), ids.end(), [](int32_t id) { return id == 0; })) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ids.empty() ? " is empty" : " is padding only: every token is 0"));
  }
  return absl::OkStatus();
}

}  // namespace longshort
