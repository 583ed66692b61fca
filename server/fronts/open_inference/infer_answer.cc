#include <algorithm>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "server/fronts/open_inference/bytes_tensor.h"
#include "server/fronts/open_inference/infer.h"
#include "server/handlers/handlers.h"

namespace longshort::server {
namespace {

using inference::ModelInferResponse;

template <typename Value>
auto& ContentsOf(inference::InferTensorContents& contents) {
  if constexpr (std::is_same_v<Value, std::string>) {
    return *contents.mutable_bytes_contents();
  } else if constexpr (std::is_same_v<Value, float>) {
    return *contents.mutable_fp32_contents();
  } else if constexpr (std::is_same_v<Value, double>) {
    return *contents.mutable_fp64_contents();
  } else if constexpr (std::is_same_v<Value, int32_t>) {
    return *contents.mutable_int_contents();
  } else {
    return *contents.mutable_int64_contents();
  }
}

// Writes the outputs of an answer, raw or typed.
class AnswerWriter final {
 public:
  // `response` must outlive the writer.
  AnswerWriter(bool raw, ModelInferResponse& response) : raw_(raw), response_(response) {}

  // `Value` is the type of the output's datatype, or std::string for classes instead of numbers.
  template <typename Value>
  void Add(Output output, const std::vector<int64_t>& shape, absl::Span<const Value> elements) {
    auto& tensor = AddTensor(output, std::is_same_v<Value, std::string> ? "BYTES" : DatatypeOf(output), shape);
    if (!raw_) {
      ContentsOf<Value>(*tensor.mutable_contents()).Assign(elements.begin(), elements.end());
    } else if constexpr (std::is_same_v<Value, std::string>) {
      std::string& raw = *response_.add_raw_output_contents();
      for (const std::string& element : elements) AppendBytesElement(element, raw);
    } else {
      // Little-endian, like the supported machines.
      response_.add_raw_output_contents(elements.data(), elements.size() * sizeof(Value));
    }
  }

  // An output without elements, for an output that the request does not produce.
  void AddNothing(Output output) {
    auto& tensor = AddTensor(output, DatatypeOf(output), {0});
    if (raw_) {
      response_.add_raw_output_contents();
    } else {
      tensor.mutable_contents();
    }
  }

 private:
  ModelInferResponse::InferOutputTensor& AddTensor(Output output, std::string_view datatype,
                                                   const std::vector<int64_t>& shape) {
    ModelInferResponse::InferOutputTensor& tensor = *response_.add_outputs();
    tensor.set_name(std::string(NameOf(output)));
    tensor.set_datatype(std::string(datatype));
    tensor.mutable_shape()->Assign(shape.begin(), shape.end());
    return tensor;
  }

  const bool raw_;
  ModelInferResponse& response_;
};

// One class: "score:index:label", without the label if the model has none.
std::string ClassText(const ClassProbability& named, float score) {
  const std::string text = absl::StrFormat("%.9g:%d", score, named.index);
  return named.label.empty() ? text : absl::StrCat(text, ":", std::string(named.label));
}

void AddClasses(const RequestedOutput& requested, const std::vector<const Classification*>& items,
                AnswerWriter& writer) {
  std::vector<std::string> elements;
  int64_t classes = 0;
  for (const Classification* item : items) {
    classes = std::min(requested.class_count, static_cast<int64_t>(item->classes.size()));
    for (int64_t i = 0; i < classes; ++i) {
      const ClassProbability& named = item->classes[i];
      const bool logits = requested.output == Output::kLogits;
      elements.push_back(ClassText(named, logits ? item->logits[named.index] : named.probability));
    }
  }
  writer.Add(requested.output, {static_cast<int64_t>(items.size()), classes}, absl::MakeConstSpan(elements));
}

const std::vector<float>& ValuesOf(const Classification& item, Output output) {
  if (output == Output::kEmbedding) return item.features;
  return output == Output::kLogits ? item.logits : item.probabilities;
}

void AddValues(Output output, const std::vector<const Classification*>& items, const models::ClassifierInfo& info,
               AnswerWriter& writer) {
  std::vector<int64_t> shape = {static_cast<int64_t>(items.size()), info.classes};
  if (output == Output::kEmbedding) shape.back() = info.width;
  if (output == Output::kEmbedding && info.vectors > 1) shape.insert(shape.end() - 1, info.vectors);
  if (items.size() == 1) {  // the usual case: saves a copy
    return writer.Add(output, shape, absl::MakeConstSpan(ValuesOf(*items.front(), output)));
  }
  std::vector<float> values;
  for (const Classification* item : items) {
    const std::vector<float>& of_item = ValuesOf(*item, output);
    values.insert(values.end(), of_item.begin(), of_item.end());
  }
  writer.Add(output, shape, absl::MakeConstSpan(values));
}

ModelInferResponse ClassificationAnswer(const AnswerForm& form, const ModelReference& model,
                                        const std::vector<const Classification*>& items,
                                        const models::ClassifierInfo& info) {
  ModelInferResponse response = EmptyAnswer(form, model);
  AnswerWriter writer(form.raw, response);
  for (const RequestedOutput& requested : form.outputs) {
    if (requested.class_count > 0) {
      AddClasses(requested, items, writer);
    } else {
      AddValues(requested.output, items, info, writer);
    }
  }
  return response;
}

// A score for each document.
ModelInferResponse ScoringAnswer(const AnswerForm& form, const ScoreResult& result) {
  ModelInferResponse response = EmptyAnswer(form, result.model);
  AnswerWriter writer(form.raw, response);
  std::vector<double> likelihoods;
  std::vector<int64_t> tokens;
  std::vector<int64_t> scored_tokens;
  for (const ScoredText& text : result.texts) {
    const TextScore& score = std::get<TextScore>(text.result);
    likelihoods.push_back(score.log_likelihood);
    tokens.push_back(score.token_count);
    scored_tokens.push_back(score.scored_token_count);
  }
  const std::vector<int64_t> shape = {static_cast<int64_t>(result.texts.size())};
  for (const RequestedOutput& requested : form.outputs) {
    if (requested.output == Output::kLogLikelihood) {
      writer.Add(requested.output, shape, absl::MakeConstSpan(likelihoods));
    } else if (requested.output == Output::kTokenCount) {
      writer.Add(requested.output, shape, absl::MakeConstSpan(tokens));
    } else if (requested.output == Output::kScoredTokenCount) {
      writer.Add(requested.output, shape, absl::MakeConstSpan(scored_tokens));
    } else {
      writer.AddNothing(requested.output);
    }
  }
  return response;
}

// The outputs of a generation, or of a piece of it.
struct Generated {
  std::vector<std::string> texts;
  std::vector<int32_t> ids;
  std::vector<std::string> finish_reasons;
};

void AddGenerated(const AnswerForm& form, const Generated& generated, ModelInferResponse& response) {
  AnswerWriter writer(form.raw, response);
  const std::vector<int64_t> completions = {static_cast<int64_t>(generated.texts.size())};
  for (const RequestedOutput& requested : form.outputs) {
    if (requested.output == Output::kText) {
      writer.Add(requested.output, completions, absl::MakeConstSpan(generated.texts));
    } else if (requested.output == Output::kFinishReason) {
      writer.Add(requested.output, completions, absl::MakeConstSpan(generated.finish_reasons));
    } else if (requested.output == Output::kTokenIds) {
      writer.Add(requested.output, {static_cast<int64_t>(generated.ids.size())}, absl::MakeConstSpan(generated.ids));
    } else {
      writer.AddNothing(requested.output);
    }
  }
}

class CallRunner {
 public:
  CallRunner(CallRecord& record, AnswerForm form, InferDone done)
      : record_(record), form_(std::move(form)), done_(std::move(done)) {}

  absl::Status operator()(ClassifyCall& call) {
    return ClassifyImages(record_, std::move(call), Answer<ClassifyResult>());
  }
  absl::Status operator()(ScoreCall& call) { return ScoreText(record_, call, Answer<ScoreResult>()); }
  absl::Status operator()(GenerateCall& call) { return Generate(record_, call, Answer<GenerateResult>()); }

 private:
  template <typename Result>
  std::function<void(absl::StatusOr<Result>)> Answer() {
    return [form = std::move(form_), done = std::move(done_)](absl::StatusOr<Result> result) {
      done([form, result = std::move(result)]() mutable -> absl::StatusOr<inference::ModelInferResponse> {
        LS_RETURN_IF_ERROR(result.status());
        absl::StatusOr<inference::ModelInferResponse> answer = AnswerOf(form, *result);
        result = absl::CancelledError();  // releases the model before the client takes the answer
        return answer;
      });
    };
  }

  CallRecord& record_;
  AnswerForm form_;
  InferDone done_;
};

}  // namespace

const char* NameOf(core::FinishReason reason) { return reason == core::FinishReason::kStopString ? "stop" : "length"; }

ModelInferResponse EmptyAnswer(const AnswerForm& form, const ModelReference& model) {
  ModelInferResponse response;
  response.set_model_name(model.name);
  response.set_model_version(absl::StrCat(model.version));
  response.set_id(form.id);
  return response;
}

absl::StatusOr<ModelInferResponse> AnswerOf(const AnswerForm& form, const ClassifyResult& result) {
  std::vector<const Classification*> items;
  items.reserve(result.images.size());
  for (const absl::StatusOr<Classification>& image : result.images) {
    LS_RETURN_IF_ERROR(image.status());
    items.push_back(&*image);
  }
  return ClassificationAnswer(form, result.model, items, result.classifier->info);
}

absl::StatusOr<ModelInferResponse> AnswerOf(const AnswerForm& form, const ScoreResult& result) {
  if (result.served->language_model() != nullptr) return ScoringAnswer(form, result);
  std::vector<const Classification*> items;
  items.reserve(result.texts.size());
  for (const ScoredText& text : result.texts) {
    items.push_back(&std::get<TextClassification>(text.result).classification);
  }
  return ClassificationAnswer(form, result.model, items, result.served->classifier()->info);
}

absl::StatusOr<ModelInferResponse> AnswerOf(const AnswerForm& form, const GenerateResult& result) {
  ModelInferResponse response = EmptyAnswer(form, result.model);
  Generated generated;
  for (const Completion& completion : result.completions) {
    generated.texts.push_back(completion.text);
    generated.finish_reasons.emplace_back(NameOf(completion.finish_reason));
    for (const core::GeneratedToken& token : completion.tokens) generated.ids.push_back(token.token);
  }
  AddGenerated(form, generated, response);
  AddUsage(result.usage, response);
  AddSeed(result.seed, response);
  return response;
}

ModelInferResponse AnswerOf(const AnswerForm& form, const ModelReference& model, const TextPiece& piece) {
  ModelInferResponse response = EmptyAnswer(form, model);
  AddGenerated(form, {.texts = {piece.text}, .ids = piece.ids, .finish_reasons = {piece.finish_reason}}, response);
  return response;
}

void AddUsage(const Usage& usage, ModelInferResponse& response) {
  auto& parameters = *response.mutable_parameters();
  parameters["prompt_tokens"].set_int64_param(usage.prompt_tokens);
  parameters["generated_tokens"].set_int64_param(usage.generated_tokens);
  parameters["cached_tokens"].set_int64_param(usage.cached_tokens);
}

void AddSeed(uint64_t seed, ModelInferResponse& response) {
  (*response.mutable_parameters())["seed"].set_string_param(absl::StrCat(seed));
}

absl::Status Infer(CallRecord& record, InferPlan plan, InferDone done) {
  return std::visit(CallRunner(record, std::move(plan.form), std::move(done)), plan.call);
}

}  // namespace longshort::server
