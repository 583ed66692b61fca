#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/strict_json.h"
#include "nlohmann/json.hpp"
#include "server/calls/call_names.h"
#include "server/fronts/openai/openai.h"
#include "server/handlers/handlers.h"
#include "server/transports/http/http_message.h"

namespace longshort::server {
namespace {

using PredictField = RequestField<PredictRequest>;
using nlohmann::ordered_json;

// Values of function_to_apply.
constexpr char kSoftmax[] = "softmax", kSigmoid[] = "sigmoid", kNone[] = "none";
constexpr char kInputForms[] = "a string, a list of strings, or a list of lists of one string or of two, a pair";

absl::Status ReadSequences(JsonRequest& json, const JsonView& value, PredictRequest& request) {
  const auto add_text = [&json](const JsonView& text, std::string_view wanted, std::vector<std::string>& sequence) {
    return json.MoveText(text, wanted, sequence.emplace_back());
  };
  request.is_string = value.is_text();
  if (!request.is_string && (!value.is_list() || value.size() == 0)) return value.Wrong(kInputForms);
  LS_RETURN_IF_ERROR(json.MakeRoom(request.inputs, request.is_string ? 1 : value.size()));
  if (request.is_string) return add_text(value, kInputForms, request.inputs.emplace_back());
  const bool are_texts = value.At(0).is_text();
  for (size_t i = 0; i < value.size(); ++i) {
    const JsonView one = value.At(i);
    std::vector<std::string>& sequence = request.inputs.emplace_back();
    if (!are_texts && (!one.is_list() || one.size() == 0 || one.size() > 2)) {
      return one.Wrong("a list of one or two strings");
    }
    LS_RETURN_IF_ERROR(json.MakeRoom(sequence, are_texts ? 1 : one.size()));
    if (are_texts) LS_RETURN_IF_ERROR(add_text(one, "a string, as the first input", sequence));
    for (size_t k = 0; !are_texts && k < one.size(); ++k) {
      LS_RETURN_IF_ERROR(add_text(one.At(k), "a string", sequence));
    }
  }
  return absl::OkStatus();
}

// Reads the field that the clients of huggingface_hub send.
absl::Status ReadParameters(JsonRequest& /*json*/, const JsonView& value, PredictRequest& request) {
  if (value.is_absent()) return absl::OkStatus();
  if (!value.is_object()) return value.Wrong("an object");
  if (!value.At("candidate_labels").is_absent()) {  // of huggingface_hub's zero_shot_classification
    return absl::InvalidArgumentError("parameters.candidate_labels is not supported: a model has classes of its own");
  }
  request.has_parameters = true;
  if (const JsonView top_k = value.At("top_k"); !top_k.is_absent()) {
    LS_ASSIGN_OR_RETURN(request.top_k, top_k.Integer());
    if (request.top_k < 1) return top_k.Wrong("at least 1");
  }
  if (const JsonView function = value.At("function_to_apply"); !function.is_absent()) {
    if (!function.Is(kSoftmax) && !function.Is(kSigmoid) && !function.Is(kNone)) {
      return function.Wrong("\"softmax\", \"sigmoid\", or \"none\", for logits");
    }
    request.function_to_apply = function.value().get<std::string>();
    if (function.Is(kNone)) request.raw_scores = true;
  }
  return absl::OkStatus();
}

constexpr char kSequencesType[] = R"({"anyOf": [
  {"type": "string"}, {"type": "array", "items": {"type": "string"}},
  {"type": "array", "items": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2}}]})";
constexpr char kParametersType[] = R"({"type": "object", "properties": {
  "top_k": {"type": "integer", "minimum": 1},
  "function_to_apply": {"type": "string", "enum": ["softmax", "sigmoid", "none"]}}})";

RequestBody<PredictRequest> MakePredictBody() {
  return WithTruncation<PredictRequest>(
      {.name = "PredictRequest",
       .fields = {
           PredictField::Model("The classifier. May be absent if one of its kind is served."),
           PredictField::Flag("raw_scores", "Whether scores are logits instead of probabilities.",
                              &PredictRequest::raw_scores),
           PredictField::Integer("top_k", "So many of the likeliest classes. Absent or 0: all, or 5 by /classify.",
                                 &PredictRequest::top_k, 0, 0),
           {{"parameters", kParametersType, "As the clients of Hugging Face send it."}, ReadParameters},
           {{.name = "inputs",
             .type = kSequencesType,
             .help = "A text, a list of texts, or a list of lists of one text or of two, a pair. For a "
                     "classifier of images, images in base64 or data URLs.",
             .required = true},
            ReadSequences}}});
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

// Errors: INVALID_ARGUMENT if a client of huggingface_hub wants another function than that of the model's problem type.
absl::Status CheckFunction(const std::string& function, const models::ClassifierInfo& info, const std::string& model) {
  const char* own = kSoftmax;
  if (info.problem_type == models::ProblemType::kMultiLabel) own = kSigmoid;
  if (info.problem_type == models::ProblemType::kRegression) own = kNone;
  if (function.empty() || function == own || function == kNone) return absl::OkStatus();
  return FieldError(
      "parameters.function_to_apply", Quoted(function),
      absl::StrCat(own == kNone ? "" : absl::StrCat(Quoted(own), " or "), Quoted(kNone), " for model ", model));
}

ClassOptions ClassesOf(const PredictRequest& request) {
  return {.top_k = request.top_k > 0 ? request.top_k : std::numeric_limits<int32_t>::max(),
          .all_logits = request.raw_scores};
}

absl::StatusOr<ScoreCall> ScoringOf(const PredictRequest& request, const core::ServedClassifier& model,
                                    const ModelReference& reference) {
  ScoreCall call{.model = reference, .options = {.truncate = request.truncate, .classes = ClassesOf(request)}};
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    const std::vector<std::string>& texts = request.inputs[i];
    const auto count = static_cast<int64_t>(texts.size());
    const std::string name = absl::StrCat("number of strings of inputs[", i, "]");
    // An encoder that was trained on single texts could join the two, but nothing has taught it what they mean.
    const int64_t most = model.info.trained_on_pairs ? 2 : 1;
    if (count < model.info.documents || count > most) {
      return FieldError(name, count,
                        absl::StrCat(model.info.documents, most > model.info.documents ? " or 2" : "", " for model ",
                                     reference.name, ", which was trained on ", most == 2 ? "pairs" : "single texts"));
    }
    if (const size_t first = request.inputs.front().size(); texts.size() != first)
      return FieldError(name, count, absl::StrCat(first, ", as of inputs[0]"));
    call.texts.push_back(ViewOf(texts[0]));
    if (count > 1) call.second_texts.push_back(ViewOf(texts[1]));
  }
  return call;
}

// The likeliest classes. `to_json` makes the JSON of one from its index, its label and its score, which is the logit if
// the request asked for logits.
template <typename ToJson>
ordered_json ClassesOf(const Classification& classification, const ToJson& to_json) {
  ordered_json classes = ordered_json::array();
  for (const ClassProbability& one : classification.classes) {
    const std::string label = one.label.empty() ? absl::StrCat("LABEL_", one.index) : std::string(one.label);
    const float score = classification.logits.empty() ? one.probability : classification.logits[one.index];
    classes.push_back(to_json(one.index, label, score));
  }
  return classes;
}

size_t BytesOf(const Classification& classification) {
  constexpr size_t kClassBytes = 16;  // beside its label
  size_t bytes = 0;
  for (const ClassProbability& one : classification.classes) bytes += kClassBytes + one.label.size();
  return bytes;
}

// The form of TEI and huggingface_hub.
ordered_json LabelledScores(const Classification& classification) {
  return ClassesOf(classification, [](int32_t /*index*/, const std::string& label, float score) {
    return ordered_json{{"score", score}, {"label", label}};
  });
}

// An answer of /predict, which is written from `results`. The function holds what these view.
template <typename ResultsOf>
CallAnswer PredictAnswer(bool is_single, ResultsOf results_of) {
  size_t bytes = 0;
  for (const Classification* one : results_of()) bytes += BytesOf(*one);
  return JsonAnswer(bytes, [is_single, results_of = std::move(results_of)] {
    ordered_json results = ordered_json::array();
    for (const Classification* result : results_of()) results.push_back(LabelledScores(*result));
    return DumpJson(is_single ? results.front() : results);
  });
}

CallAnswer ClassifyAnswer(ClassifyResult result, bool as_list) {
  const size_t bytes = BytesOf(*result.images.front());
  return JsonAnswer(bytes, [result = std::move(result), as_list] {
    if (as_list) return DumpJson(LabelledScores(*result.images.front()));
    ordered_json classes = ClassesOf(*result.images.front(), [](int32_t index, const std::string& label, float score) {
      return ordered_json{{"index", index}, {"label", label}, {"probability", score}};
    });
    return DumpJson({{"model", result.model.name}, {"version", result.model.version}, {"classes", std::move(classes)}});
  });
}

absl::Status ReadPredictBody(std::string_view body, const RequestLimits& limits, MemoryMeter& meter,
                             PredictRequest& request) {
  const JsonListLimit lists[] = {{.key = "inputs", .elements = limits.inputs}};
  return ReadJsonBody(PredictBody(), body, lists, meter, request);
}

// Sets a parameter of the address or of a form.
absl::Status SetParameter(const std::string& name, const std::string& value, ClassifyRequest& classify) {
  if (name == "model") return classify.model = value, absl::OkStatus();
  if (name != "top_k") return FieldError("a field of the form", Quoted(name), "model, top_k, or one file, the image");
  if (!absl::SimpleAtoi(value, &classify.top_k)) return FieldError("top_k", Quoted(value), "a number");
  return absl::OkStatus();
}

// As huggingface_hub's clients write a request.
absl::Status ReadClassifyJson(std::string_view body, const RequestLimits& limits, MemoryMeter& meter,
                              ClassifyRequest& classify) {
  PredictRequest request;
  LS_RETURN_IF_ERROR(ReadPredictBody(body, limits, meter, request));
  if (!request.is_string) return absl::InvalidArgumentError("inputs is not a string; it must be one image");
  if (request.raw_scores)
    return absl::InvalidArgumentError("the request asks for logits; /classify gives probabilities, /predict both");
  classify.function_to_apply = request.function_to_apply;
  if (!request.model.empty()) classify.model = request.model;
  if (request.top_k > 0) classify.top_k = request.top_k;
  LS_ASSIGN_OR_RETURN(classify.image, ImageOfText("inputs", request.inputs[0][0], meter));
  return absl::OkStatus();
}

ImageInput ImageOf(std::string file) {
  const auto owner = std::make_shared<const std::string>(std::move(file));
  return {.content = std::string_view(*owner), .owner = owner, .bytes = static_cast<int64_t>(owner->size())};
}

// huggingface_hub takes the first of a list of results.
bool IsSingle(const PredictRequest& request) { return request.is_string && !request.has_parameters; }

// The images of the body, or of texts that are images in base64.
absl::Status PredictImages(CallRecord& record, PredictRequest request, const Answerer<CallAnswer>& answer) {
  ClassifyCall call{.model = record.answering_model(), .options = ClassesOf(request)};
  if (request.image.has_value()) call.images.push_back(ImageOf(*std::move(request.image)));
  MemoryMeter uncounted;  // the text is counted, has more bytes, and is freed
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    const std::string text = std::move(request.inputs[i].front());
    LS_ASSIGN_OR_RETURN(std::string image, ImageOfText(absl::StrCat("inputs[", i, "]"), text, uncounted));
    call.images.push_back(ImageOf(std::move(image)));
  }
  const auto to_answer = [](absl::StatusOr<ClassifyResult> result) -> absl::StatusOr<CallAnswer> {
    LS_RETURN_IF_ERROR(result.status());
    for (const absl::StatusOr<Classification>& image : result->images) LS_RETURN_IF_ERROR(image.status());
    const bool is_single = result->images.size() == 1;
    return PredictAnswer(is_single, [result = *std::move(result)] {
      std::vector<const Classification*> results;
      results.reserve(result.images.size());
      for (const absl::StatusOr<Classification>& image : result.images) results.push_back(&*image);
      return results;
    });
  };
  return ClassifyImages(record, std::move(call), Answering(answer, to_answer));
}

}  // namespace

const RequestBody<PredictRequest>& PredictBody() {
  static const auto* const body = new RequestBody<PredictRequest>(MakePredictBody());
  return *body;
}

absl::Status ReadPredict(HttpRequest& http, const RequestLimits& limits, PredictRequest& request, MemoryMeter& meter) {
  request.model = QueryParameter(http.query, "model").value_or("");
  if (http.MediaType() == kJsonType) return ReadPredictBody(http.body, limits, meter, request);
  LS_ASSIGN_OR_RETURN(request.image, TakeImage(http, meter));
  return absl::OkStatus();
}

absl::Status ReadClassify(HttpRequest& http, const RequestLimits& limits, ClassifyRequest& request,
                          MemoryMeter& meter) {
  request.model = QueryParameter(http.query, "model").value_or("");
  if (const std::optional<std::string> top_k = QueryParameter(http.query, "top_k"); top_k.has_value()) {
    LS_RETURN_IF_ERROR(SetParameter("top_k", *top_k, request));
  }
  // huggingface_hub names itself in each request.
  request.as_list = absl::StrContains(http.Find("user-agent").value_or(""), "hf_hub/");
  if (http.MediaType() == kJsonType) return ReadClassifyJson(http.body, limits, meter, request);
  if (http.MediaType() == kFormType) {
    LS_RETURN_IF_ERROR(KeepFileOfForm(http, [&request](const std::string& name, const std::string& value) {
      return SetParameter(name, value, request);
    }));
  }
  LS_ASSIGN_OR_RETURN(request.image, TakeImage(http, meter));
  return absl::OkStatus();
}

absl::Status Predict(CallRecord& record, PredictRequest request, const Answerer<CallAnswer>& answer) {
  const auto input = request.image.has_value() ? models::ClassifierInput::kImage : models::ClassifierInput::kText;
  LS_ASSIGN_OR_RETURN(const std::shared_ptr<const core::ServedClassifier> model,
                      FindClassifier(record, request.model, input));
  LS_RETURN_IF_ERROR(CheckFunction(request.function_to_apply, model->info, record.answering_model().name));
  if (model->info.input == models::ClassifierInput::kImage) return PredictImages(record, std::move(request), answer);
  if (request.image.has_value()) {
    return absl::FailedPreconditionError(
        absl::StrCat("model ", record.answering_model().name, " is a classifier of texts; the body is an image"));
  }
  LS_ASSIGN_OR_RETURN(const ScoreCall call, ScoringOf(request, *model, record.answering_model()));
  const auto to_answer = [is_single =
                              IsSingle(request)](absl::StatusOr<ScoreResult> result) -> absl::StatusOr<CallAnswer> {
    LS_RETURN_IF_ERROR(result.status());
    return PredictAnswer(is_single, [result = *std::move(result)] {
      std::vector<const Classification*> results;
      results.reserve(result.texts.size());
      for (const ScoredText& text : result.texts) {
        results.push_back(&std::get<TextClassification>(text.result).classification);
      }
      return results;
    });
  };
  return ScoreText(record, call, Answering(answer, to_answer));
}

absl::Status Classify(CallRecord& record, ClassifyRequest request, const Answerer<CallAnswer>& answer) {
  LS_ASSIGN_OR_RETURN(const std::shared_ptr<const core::ServedClassifier> model,
                      FindClassifier(record, request.model, models::ClassifierInput::kImage));
  LS_RETURN_IF_ERROR(CheckFunction(request.function_to_apply, model->info, record.answering_model().name));
  ClassifyCall call{.model = record.answering_model(), .options = {.top_k = request.top_k}};
  call.images.push_back(ImageOf(std::move(request.image)));
  const auto to_answer = [as_list =
                              request.as_list](absl::StatusOr<ClassifyResult> result) -> absl::StatusOr<CallAnswer> {
    LS_RETURN_IF_ERROR(result.status());
    LS_RETURN_IF_ERROR(result->images.front().status());
    return ClassifyAnswer(*std::move(result), as_list);
  };
  return ClassifyImages(record, std::move(call), Answering(answer, to_answer));
}

}  // namespace longshort::server
