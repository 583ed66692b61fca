#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/fronts/openai/openai.h"

namespace longshort::server {
namespace {

std::string Indexed(std::string_view name, const FieldPath& path) {
  std::string text(name);
  if (path.index.has_value()) absl::StrAppend(&text, "[", *path.index, "]");
  if (path.id_index.has_value()) absl::StrAppend(&text, "[", *path.id_index, "]");
  return text;
}

// The fields of WithTruncation.
constexpr char kTruncation[] = "truncate and truncation_direction \"Right\"";

std::string NameOfCompletionsField(const FieldPath& path) {
  constexpr std::string_view kSampling = "sampling.";
  if (path.field == "completions") return "n";
  if (path.field == "top_alternatives") return "logprobs";
  if (path.field == "model.name") return "model";
  if (path.field == "prompts" || (path.field == "inputs" && !path.index.has_value())) return "prompts";
  if (path.field == "inputs") return Indexed("prompt", path);
  if (path.field == "sampling.logit_bias" && path.index.has_value()) {
    return absl::StrCat("logit_bias[\"", *path.index, "\"]");
  }
  if (path.field.starts_with(kSampling)) return std::string(path.field.substr(kSampling.size()));
  return Indexed(path.field, path);
}

std::string NameOfEmbeddingsField(const FieldPath& path) {
  if (path.field == "model.name") return "model";
  if (path.field == "truncate") return kTruncation;
  return path.field == "inputs" ? Indexed("input", path) : Indexed(path.field, path);
}

std::string NameOfClassifierField(const FieldPath& path) {
  if (path.field == "model.name") return "model";
  if (path.field == "truncate") return kTruncation;
  if (path.field == "images") return "the body";
  if (path.field == "second_inputs") return absl::StrCat("the second text of ", Indexed("inputs", path));
  return Indexed(path.field, path);
}

// 2,048 embeddings of 4,096 numbers. Clients of these protocols have no limit of their own.
constexpr int64_t kAnswerBytes = int64_t{33} << 20;

}  // namespace

constexpr FieldVocabulary kCompletionsVocabulary = {.name_of = NameOfCompletionsField,
                                                    .text_kinds = "text or token ids",
                                                    .image_kinds = "",
                                                    .streaming_rpc = "`stream`"};
constexpr FieldVocabulary kEmbeddingsVocabulary = {.name_of = NameOfEmbeddingsField,
                                                   .text_kinds = "text or token ids",
                                                   .image_kinds = "",
                                                   .streaming_rpc = "",
                                                   .answer_bytes = kAnswerBytes};
constexpr FieldVocabulary kClassifierVocabulary = {.name_of = NameOfClassifierField,
                                                   .text_kinds = "text",
                                                   .image_kinds = "an image file",
                                                   .streaming_rpc = "",
                                                   .answer_bytes = kAnswerBytes};

ModelReference ReferenceOf(const std::string& name) {
  const size_t slash = name.rfind('/');
  int64_t version = 0;
  if (slash == std::string::npos || !absl::SimpleAtoi(name.substr(slash + 1), &version) || version < 1)
    return {.name = name};
  return {.name = name.substr(0, slash), .version = version};
}

absl::StatusOr<ModelReference> ChooseModel(const CallRecord& record, const std::string& name, const char* kind,
                                           absl::FunctionRef<bool(const core::ServedModel&)> is_of_kind) {
  if (!name.empty()) return ReferenceOf(name);
  std::set<std::string> names;
  for (const std::shared_ptr<core::ServedModel>& served : record.environment().models.List()) {
    if (is_of_kind(*served) && record.caller().MayUse(served->name)) names.insert(served->name);
  }
  if (names.size() == 1) return ModelReference{.name = *names.begin()};
  if (names.empty()) return absl::NotFoundError(absl::StrCat("the server has no ", kind));
  return absl::InvalidArgumentError(
      absl::StrCat("the request names no model; `model` in JSON, or ?model=NAME in the address, must name one of the ",
                   kind, ": ", absl::StrJoin(names, ", ")));
}

}  // namespace longshort::server
