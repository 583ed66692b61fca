#include <array>
#include <bit>
#include <charconv>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
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

using EmbeddingsField = RequestField<EmbeddingsRequest>;
using Values = std::vector<float>;

constexpr char kTextsHelp[] = "A classifier of texts. May be absent if one is served.";
constexpr char kFloat[] = "float", kBase64[] = "base64";

absl::Status ReadFormat(JsonRequest& /*json*/, const JsonView& value, EmbeddingsRequest& request) {
  if (value.is_absent()) return absl::OkStatus();
  LS_RETURN_IF_ERROR(value.Text().status());
  if (!value.Is(kFloat) && !value.Is(kBase64)) return value.Wrong(absl::StrCat(kFloat, " or ", kBase64));
  request.in_base64 = value.Is(kBase64);
  return absl::OkStatus();
}

constexpr RefusedField kPromptName = {"prompt_name", "the models have no prompts"};

EmbeddingsField Dimensions() {
  return EmbeddingsField::Integer("dimensions", "The width of the model's embeddings; 0 is unset.",
                                  &EmbeddingsRequest::dimensions, 0, 0);
}

EmbeddingsField Inputs(std::string_view name) {
  return {{.name = name, .type = kPromptsType, .help = "A text, token ids, or a list of either.", .required = true},
          [](JsonRequest& json, const JsonView& value, EmbeddingsRequest& request) {
            return json.ReadPrompts(value, request.inputs);
          }};
}

// Reads -1, which means as many tokens as the model reads. The body refuses other values.
absl::Status ReadMostTokens(JsonRequest& /*json*/, const JsonView& value, EmbeddingsRequest& request) {
  if (!value.is_absent()) request.truncate = true;
  return absl::OkStatus();
}

RequestBody<EmbeddingsRequest> MakeEmbeddingsBody() {
  RequestBody<EmbeddingsRequest> body = WithTruncation<EmbeddingsRequest>(
      {.name = "EmbeddingsRequest",
       .fields = {EmbeddingsField::Model(kTextsHelp),
                  {{"encoding_format", "float|base64", "Base64: of 32-bit floats, lowest byte first."}, ReadFormat},
                  Dimensions(),
                  Inputs("input")},
       .refused = {
           kPromptName,
           {"add_special_tokens", "texts have their special tokens; send token ids for others", "[true]"},
           {"embed_dtype", "the embeddings are of 32-bit floats", R"(["float32"])"},
           {"endianness", "base64 has the lowest byte first", R"(["native", "little"])"},
           {"modality", "the inputs are texts; /longshort.v1.Inference/Embed embeds images, too", R"(["text"])"},
           {"normalize", "the embeddings have length 1; /embed has others, too", "[true]"},
           {"truncate_prompt_tokens",
            "send `truncate` as true, which keeps as many of a text's first tokens as the model reads", "[-1]"}}});
  // Before truncation_direction, which refuses to keep the end, and behind `truncate`.
  body.fields.insert(
      body.fields.end() - 1,
      EmbeddingsField{{"truncate_prompt_tokens", "integer", "-1 is the same as `truncate`."}, ReadMostTokens});
  return body;
}

RequestBody<EmbeddingsRequest> MakeEmbedBody() {
  return WithTruncation<EmbeddingsRequest>(
      {.name = "EmbedRequest",
       .fields = {EmbeddingsField::Model(kTextsHelp),
                  EmbeddingsField::Flag("normalize", "Whether a vector is divided by its length.",
                                        &EmbeddingsRequest::normalize, true),
                  Dimensions(), Inputs("inputs")},
       .refused = {kPromptName}});
}

// The numbers as a JSON list, with as few digits as identify them.
std::string ListOf(const Values& values) {
  constexpr size_t kMaxDigits = 32;
  std::string list = "[";
  std::array<char, kMaxDigits> digits;
  for (const float value : values) {
    if (list.size() > 1) list += ',';
    list.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr);
  }
  list += ']';
  return list;
}

// The numbers as float32, lowest byte first, in base64.
std::string Base64Of(const Values& values) {
  static_assert(std::endian::native == std::endian::little);
  return absl::Base64Escape({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
}

// TEI's form of an answer.
std::string ListsOf(const EmbedResult& result) {
  std::string lists = "[";
  for (const absl::StatusOr<Embedding>& one : result.embeddings) {
    absl::StrAppend(&lists, lists.size() > 1 ? "," : "", ListOf(one->values));
  }
  return lists + "]";
}

}  // namespace

const RequestBody<EmbeddingsRequest>& EmbeddingsBody() {
  static const auto* const body = new RequestBody<EmbeddingsRequest>(MakeEmbeddingsBody());
  return *body;
}

const RequestBody<EmbeddingsRequest>& EmbedBody() {
  static const auto* const body = new RequestBody<EmbeddingsRequest>(MakeEmbedBody());
  return *body;
}

absl::Status ReadEmbeddings(HttpRequest& http, const RequestLimits& limits, EmbeddingsRequest& request,
                            MemoryMeter& meter) {
  const JsonListLimit lists[] = {LimitOfTexts("input", limits.inputs, limits)};
  return ReadJsonBody(EmbeddingsBody(), http.body, lists, meter, request);
}

absl::Status ReadEmbed(HttpRequest& http, const RequestLimits& limits, EmbeddingsRequest& request, MemoryMeter& meter) {
  const JsonListLimit lists[] = {LimitOfTexts("inputs", limits.inputs, limits)};
  request.model = QueryParameter(http.query, "model").value_or("");
  request.as_lists = true;
  return ReadJsonBody(EmbedBody(), http.body, lists, meter, request);
}

// Writes the numbers itself: a JSON document of them would take many times their memory.
std::string EmbeddingsJson(const EmbedResult& result, bool in_base64) {
  std::string json = R"({"object":"list","data":[)";
  for (size_t i = 0; i < result.embeddings.size(); ++i) {
    const Values& values = result.embeddings[i]->values;
    absl::StrAppend(&json, i > 0 ? "," : "", R"({"object":"embedding","index":)", i, R"(,"embedding":)",
                    in_base64 ? absl::StrCat("\"", Base64Of(values), "\"") : ListOf(values), "}");
  }
  const int64_t tokens = result.usage.prompt_tokens;
  absl::StrAppend(&json, R"(],"model":)", DumpJson(result.model.name), R"(,"usage":)",
                  DumpJson({{"prompt_tokens", tokens}, {"total_tokens", tokens}}), "}");
  return json;
}

absl::Status CreateEmbeddings(CallRecord& record, const EmbeddingsRequest& request,
                              const Answerer<CallAnswer>& answer) {
  LS_ASSIGN_OR_RETURN(ModelReference model,
                      ChooseModel(record, request.model, "classifiers of texts", [](const core::ServedModel& served) {
                        return served.classifier() != nullptr &&
                               served.classifier()->info.input == models::ClassifierInput::kText;
                      }));
  if (request.dimensions != 0) {
    LS_ASSIGN_OR_RETURN(const std::shared_ptr<const core::ServedClassifier> classifier, record.FindClassifier(model));
    const int64_t width = classifier->info.width;
    if (request.dimensions != width) {
      return FieldError("dimensions", request.dimensions, absl::StrCat(width, ", the width of model ", model.name));
    }
  }
  EmbedCall call{.model = std::move(model), .options = {.normalize = request.normalize, .truncate = request.truncate}};
  for (const Prompt& input : request.inputs) call.texts.push_back(ViewOf(input));
  const auto to_answer = [as_lists = request.as_lists, in_base64 = request.in_base64](
                             absl::StatusOr<EmbedResult> result) -> absl::StatusOr<CallAnswer> {
    LS_RETURN_IF_ERROR(result.status());
    size_t bytes = 0;
    for (const absl::StatusOr<Embedding>& one : result->embeddings) {
      LS_RETURN_IF_ERROR(one.status());
      bytes += one->values.size() * sizeof(float);
    }
    return JsonAnswer(bytes, [result = *std::move(result), as_lists, in_base64] {
      return as_lists ? ListsOf(result) : EmbeddingsJson(result, in_base64);
    });
  };
  return Embed(record, std::move(call), Answering(answer, to_answer));
}

}  // namespace longshort::server
