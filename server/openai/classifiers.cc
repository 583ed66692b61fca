#include "server/openai/classifiers.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/strict_json.h"
#include "server/calls/field_error.h"
#include "server/handlers/handlers.h"
#include "server/http/http_query.h"
#include "server/http/http_status.h"
#include "server/openai/find_model.h"
#include "server/openai/json_request.h"

namespace longshort::server {
namespace {

using nlohmann::ordered_json;

constexpr char kInputForms[] =
    "a string, a pair of strings, or a list of either: [[\"one\"], [\"two\"]] or [[\"first\", \"second\"]]";

absl::Status ReadInputs(JsonRequest& json, openai::PredictRequest& request) {
  nlohmann::json* const found = json.Find("inputs");
  if (found == nullptr) return absl::InvalidArgumentError(absl::StrCat("inputs is missing; it must be ", kInputForms));
  if (found->is_string()) {
    request.set_is_string(true);
    return json.MoveText("inputs", *found, kInputForms, *request.add_inputs()->add_texts());
  }
  if (!found->is_array() || found->empty()) return WrongJson("inputs", *found, kInputForms);
  request.set_is_list(found->front().is_string());
  for (size_t i = 0; i < found->size(); ++i) {
    nlohmann::json& one = (*found)[i];
    const std::string name = absl::StrCat("inputs[", i, "]");
    LS_RETURN_IF_ERROR(json.CountPart());
    openai::PredictRequest::Sequence& sequence = *request.add_inputs();
    if (request.is_list()) {
      LS_RETURN_IF_ERROR(json.MoveText(name, one, "a string, as the first input", *sequence.add_texts()));
      continue;
    }
    constexpr char kPair[] = "a list of one or two strings";
    if (!one.is_array() || one.empty() || one.size() > 2) return WrongJson(name, one, kPair);
    for (nlohmann::json& text : one) LS_RETURN_IF_ERROR(json.MoveText(name, text, kPair, *sequence.add_texts()));
  }
  return absl::OkStatus();
}

// The model that a request means.
absl::StatusOr<std::shared_ptr<const core::ServedClassifier>> FindClassifier(CallRecord& record,
                                                                             const std::string& name,
                                                                             models::ClassifierInput input) {
  const bool is_text = input == models::ClassifierInput::kText;
  const auto is_of_kind = [input](const core::ServedModel& served) {
    return served.classifier() != nullptr && served.classifier()->info.input == input;
  };
  LS_ASSIGN_OR_RETURN(
      const ModelReference reference,
      ChooseModel(record, name, is_text ? "classifiers of texts" : "classifiers of images", is_of_kind));
  return record.FindClassifier(reference);
}

TextInput TextOf(const std::string& text) { return {.kind = TextInput::Kind::kText, .text = text}; }

// Two strings are one pair for a model that takes pairs, and two inputs for a model of single texts.
bool IsOnePair(const openai::PredictRequest& request, const core::ServedClassifier& model) {
  return request.is_list() && request.inputs_size() == 2 && model.info.MaxDocuments() == 2;
}

absl::StatusOr<ScoreCall> ScoringOf(const openai::PredictRequest& request, const core::ServedClassifier& model,
                                    const ModelReference& reference) {
  ScoreCall call{
      .model = reference,
      .options = {.truncate = request.truncate(),
                  .classes = {.top_k = std::numeric_limits<int32_t>::max(), .all_logits = request.raw_scores()}}};
  if (IsOnePair(request, model)) {
    call.texts = {TextOf(request.inputs(0).texts(0))};
    call.second_texts = {TextOf(request.inputs(1).texts(0))};
    return call;
  }
  for (int i = 0; i < request.inputs_size(); ++i) {
    const auto& texts = request.inputs(i).texts();
    const std::string name = absl::StrCat("number of strings of inputs[", i, "]");
    if (texts.size() < model.info.documents || texts.size() > model.info.MaxDocuments()) {
      return FieldError(
          name, texts.size(),
          absl::StrCat(model.info.documents, model.info.joins_pairs ? " or 2" : "", " for model ", reference.name));
    }
    if (const int first = request.inputs(0).texts_size(); texts.size() != first)
      return FieldError(name, texts.size(), absl::StrCat(first, ", as of inputs[0]"));
    call.texts.push_back(TextOf(texts[0]));
    if (texts.size() > 1) call.second_texts.push_back(TextOf(texts[1]));
  }
  return call;
}

void Set(const Classification& classification, openai::Classes& message) {
  for (const ClassProbability& one : classification.classes) {
    openai::Class& added = *message.add_classes();
    added.set_index(one.index);
    added.set_label(one.label.empty() ? absl::StrCat("LABEL_", one.index) : std::string(one.label));
    added.set_score(classification.logits.empty() ? one.probability : classification.logits[one.index]);
  }
}

HttpResponse JsonAnswer(const ordered_json& json) { return {.body = DumpJson(json), .content_type = kJsonType}; }

class PredictCodec final : public HttpCodec {
 public:
  explicit PredictCodec(const RequestLimits& limits) : limits_(limits) {}

  absl::Status ReadRequest(HttpRequest& request, google::protobuf::Message& message, MemoryMeter& meter) override {
    auto& predict = static_cast<openai::PredictRequest&>(message);
    LS_RETURN_IF_ERROR(ReadPredictRequest(request.body, limits_, meter, predict));
    predict.set_model(QueryParameter(request.query, "model").value_or(""));
    return absl::OkStatus();
  }

  absl::StatusOr<HttpResponse> WriteAnswer(const google::protobuf::Message& answer) override {
    const auto& predict = static_cast<const openai::PredictAnswer&>(answer);
    ordered_json results = ordered_json::array();
    for (const openai::Classes& result : predict.results()) {
      ordered_json classes = ordered_json::array();
      for (const openai::Class& one : result.classes()) {
        classes.push_back({{"score", one.score()}, {"label", one.label()}});
      }
      results.push_back(std::move(classes));
    }
    return JsonAnswer(predict.is_single() ? results.front() : results);
  }
  HttpResponse WriteError(const absl::Status& status) override { return ProblemDetails(status); }

 private:
  const RequestLimits& limits_;
};

class ClassifyCodec final : public HttpCodec {
 public:
  absl::Status ReadRequest(HttpRequest& request, google::protobuf::Message& message, MemoryMeter& meter) override {
    auto& classify = static_cast<openai::ClassifyRequest&>(message);
    classify.set_model(QueryParameter(request.query, "model").value_or(""));
    if (const std::optional<std::string> top_k = QueryParameter(request.query, "top_k"); top_k.has_value()) {
      int64_t number = 0;
      if (!absl::SimpleAtoi(*top_k, &number)) return FieldError("top_k", Quoted(*top_k), "a number");
      classify.set_top_k(number);
    }
    if (request.body.empty()) return absl::InvalidArgumentError("the body is empty; it must be an image file");
    classify.set_image(std::move(request.body));
    return meter.Add(HeapBytesOfText(classify.image().capacity()));
  }

  absl::StatusOr<HttpResponse> WriteAnswer(const google::protobuf::Message& answer) override {
    const auto& classify = static_cast<const openai::ClassifyAnswer&>(answer);
    ordered_json classes = ordered_json::array();
    for (const openai::Class& one : classify.classes().classes()) {
      classes.push_back({{"index", one.index()}, {"label", one.label()}, {"probability", one.score()}});
    }
    return JsonAnswer({{"model", classify.model()}, {"version", classify.version()}, {"classes", std::move(classes)}});
  }
  HttpResponse WriteError(const absl::Status& status) override { return ProblemDetails(status); }
};

}  // namespace

absl::Status ReadPredictRequest(std::string_view body, const RequestLimits& limits, MemoryMeter& meter,
                                openai::PredictRequest& request) {
  const JsonListLimit lists[] = {{.key = "inputs", .elements = limits.inputs}};
  JsonRequest json(meter, lists);
  LS_RETURN_IF_ERROR(json.Parse(body));
  LS_RETURN_IF_ERROR(json.RefuseUnknown({"inputs", "truncate", "raw_scores"}));
  bool truncate = false, raw_scores = false;
  LS_RETURN_IF_ERROR(json.Read("truncate", truncate));
  LS_RETURN_IF_ERROR(json.Read("raw_scores", raw_scores));
  request.set_truncate(truncate);
  request.set_raw_scores(raw_scores);
  return ReadInputs(json, request);
}

absl::Status Predict(CallRecord& record, const openai::PredictRequest& request,
                     const Answerer<openai::PredictAnswer>& answer) {
  LS_ASSIGN_OR_RETURN(const std::shared_ptr<const core::ServedClassifier> model,
                      FindClassifier(record, request.model(), models::ClassifierInput::kText));
  if (model->info.input != models::ClassifierInput::kText) {
    return absl::FailedPreconditionError(absl::StrCat("model ", record.answering_model().name,
                                                      " is a classifier of images; POST an image to /classify"));
  }
  LS_ASSIGN_OR_RETURN(const ScoreCall call, ScoringOf(request, *model, record.answering_model()));
  const bool is_single = request.is_string() || IsOnePair(request, *model);
  const auto to_message = [is_single](absl::StatusOr<ScoreResult> result) -> absl::StatusOr<openai::PredictAnswer> {
    LS_RETURN_IF_ERROR(result.status());
    openai::PredictAnswer message;
    message.set_is_single(is_single);
    for (const ScoredText& text : result->texts) {
      Set(std::get<TextClassification>(text.result).classification, *message.add_results());
    }
    return message;
  };
  return ScoreTexts(record, call, Answering(answer, to_message));
}

absl::Status Classify(CallRecord& record, openai::ClassifyRequest request,
                      const Answerer<openai::ClassifyAnswer>& answer) {
  LS_RETURN_IF_ERROR(FindClassifier(record, request.model(), models::ClassifierInput::kImage).status());
  const auto image = std::make_shared<const std::string>(std::move(*request.mutable_image()));
  ClassifyCall call{.model = record.answering_model(), .options = {.top_k = request.top_k()}};
  call.images.push_back(
      {.content = std::string_view(*image), .owner = image, .bytes = static_cast<int64_t>(image->size())});
  const auto to_message = [](absl::StatusOr<ClassifyResult> result) -> absl::StatusOr<openai::ClassifyAnswer> {
    LS_RETURN_IF_ERROR(result.status());
    const absl::StatusOr<Classification>& classified = result->images.front();
    LS_RETURN_IF_ERROR(classified.status());
    openai::ClassifyAnswer message;
    message.set_model(result->model.name);
    message.set_version(result->model.version);
    Set(*classified, *message.mutable_classes());
    return message;
  };
  return ClassifyImages(record, std::move(call), Answering(answer, to_message));
}

HttpResponse ProblemDetails(const absl::Status& status) {
  const int http_status = HttpStatusOf(status);
  return {.status = http_status,
          .body = DumpJson({{"type", "about:blank"},
                            {"title", HttpReason(http_status)},
                            {"status", http_status},
                            {"detail", std::string(status.message())},
                            {"code", std::string(CodeName(status.code()))}}),
          .content_type = "application/problem+json"};
}

std::unique_ptr<HttpCodec> MakePredictCodec(const RequestLimits& limits) {
  return std::make_unique<PredictCodec>(limits);
}

std::unique_ptr<HttpCodec> MakeClassifyCodec() { return std::make_unique<ClassifyCodec>(); }

}  // namespace longshort::server
