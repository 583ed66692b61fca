// The service over a real connection on loopback: a language model "speaker", a classifier of texts "texts", one of
// pairs "pairs", one of images "images", and a language model without vocabulary "ids", each with a scripted engine.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "open_inference/v2/service.grpc.pb.h"
#include "tests/server/fakes/scripted_classifier.h"
#include "tests/server/fakes/scripted_engine.h"
#include "tests/server/fakes/serving_fixture.h"
#include "tests/server/fronts/open_inference/requests.h"

namespace longshort::server {

class OpenInferenceFixture : public ServingFixture {
 protected:
  OpenInferenceFixture() {
    auto speaker = std::make_unique<ScriptedEngine>();
    auto texts = std::make_unique<ScriptedClassifierEngine>();
    auto images = std::make_unique<ScriptedClassifierEngine>();
    speaker_ = speaker.get();
    texts_ = texts.get();
    images_ = images.get();
    std::map<std::string, core::ServedModel::Kind> models;
    models["texts"] = TextClassifier(std::move(texts));
    models["pairs"] = TextClassifier(std::make_unique<ScriptedClassifierEngine>(), 2);
    models["images"] = ImageClassifier(std::move(images));
    auto ids = std::make_unique<ScriptedEngine>();
    ids_ = ids.get();
    models["speaker"] = core::ServedLanguageModel{
        .info = ByteModel()->info, .tokenizer = ByteModel()->tokenizer, .engine = std::move(speaker)};
    models["ids"] = core::ServedLanguageModel{.info = IdModel()->info, .tokenizer = nullptr, .engine = std::move(ids)};
    Serve(RegistryOf(std::move(models)));
    open_stub_ = inference::GRPCInferenceService::NewStub(Connect({}));
  }

  grpc::Status Infer(const inference::ModelInferRequest& request) {
    grpc::ClientContext context;
    return open_stub_->ModelInfer(&context, request, &response_);
  }
  // As above, while a thread answers every item with these scores.
  grpc::Status InferWith(ScriptedClassifierEngine& engine, size_t items, const inference::ModelInferRequest& request) {
    std::thread thread([&] { End(engine, items); });
    const grpc::Status status = Infer(request);
    thread.join();
    return status;
  }

  static void End(ScriptedClassifierEngine& engine, size_t items) {
    for (const ScriptedClassifierEngine::Item& item : engine.TakeItems(items)) {
      const auto* preparation = std::get_if<core::ItemPreparation>(&item.request.item);
      const absl::Status prepared =
          preparation == nullptr ? absl::OkStatus() : core::PrepareItem(*preparation).status();
      core::ItemResult result = ScoresFor(1);
      if (item.request.output == models::ClassifierOutput::kLogitsAndFeatures) {
        result.row.insert(result.row.end(), {7, 8});
      }
      item.listener->OnFinished(prepared.ok() ? absl::StatusOr<core::ItemResult>(std::move(result)) : prepared);
    }
  }

  static core::GenerationDelta Bytes(const std::string& bytes) {
    return {.bytes = bytes, .tokens = {core::GeneratedToken()}};
  }
  static core::GenerationSummary Summary(int64_t generated) {
    core::GenerationSummary summary;
    summary.prompt_tokens = 3;
    summary.generated_tokens = generated;
    return summary;
  }

  ScriptedEngine* speaker_;
  ScriptedEngine* ids_;
  ScriptedClassifierEngine* texts_;
  ScriptedClassifierEngine* images_;
  std::unique_ptr<inference::GRPCInferenceService::Stub> open_stub_;
  inference::ModelInferResponse response_;
};

}  // namespace longshort::server
