// The text classifier as it is served: any mix of documents in one batch, which runs as micro-batches.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/attention/item_attention.h"
#include "models/classifier.h"
#include "models/classifiers/text_network.h"
#include "models/gpu_backends.h"
#include "models/layers/kept_memory.h"
#include "models/layers/micro_batches.h"
#include "models/layers/placed_networks.h"

namespace longshort {

class ServedTextClassifier final : public Classifier {
 public:
  // `place` is one of the networks'. Errors: those of MakeItemAttention, by `gpus`, which must outlive it.
  static absl::StatusOr<std::unique_ptr<ServedTextClassifier>> Create(ClassifierInfo info,
                                                                      PlacedNetworks<TextNetwork> networks,
                                                                      const PlacedNetworks<TextNetwork>::Place& place,
                                                                      const GpuBackends* gpus);

  const ClassifierInfo& info() const override { return info_; }
  absl::StatusOr<std::unique_ptr<Classifier>> Replicate(const WorkerDevice& device) const override;
  // Ids after a document's last that is not 0 make no difference and no work.
  absl::StatusOr<ClassifierResult> Classify(absl::Span<const ClassifierItem* const> items) override;
  void Rest() override;

 private:
  ServedTextClassifier(ClassifierInfo info, PlacedNetworks<TextNetwork> networks,
                       const PlacedNetworks<TextNetwork>::Place& place, const GpuBackends* gpus,
                       std::unique_ptr<ItemAttention> attention);

  ClassifierResult ClassifyOnCpu(absl::Span<const absl::Span<const int32_t>> documents,
                                 absl::Span<const int64_t> item_tokens);
  absl::Status CheckItem(const ClassifierItem& item, size_t index) const;
  absl::Status CheckDocument(const std::vector<int32_t>& ids, const std::string& name) const;

  KeptMemory kept_memory_;  // the first: ends last
  ClassifierInfo info_;
  PlacedNetworks<TextNetwork> networks_;
  std::shared_ptr<const TextNetwork> network_;  // the one of them that runs here
  const GpuBackends* gpus_;
  std::unique_ptr<ItemAttention> attention_;  // null on the CPU
  const ItemAttention::DocumentLayers layers_;
  MicroBatchWork micro_batch_work_;  // in tokens
  MicroBatchRunner runner_;
  std::vector<float> logits_;  // of the last batch on the CPU
};

}  // namespace longshort
