#include "server/fronts/openai/names.h"

#include "absl/strings/str_cat.h"

namespace longshort::server {
namespace {

std::string Indexed(std::string_view name, const FieldPath& path) {
  std::string text(name);
  if (path.index.has_value()) absl::StrAppend(&text, "[", *path.index, "]");
  if (path.id_index.has_value()) absl::StrAppend(&text, "[", *path.id_index, "]");
  return text;
}

// What ReadTruncation reads.
constexpr char kTruncation[] = "truncate and truncation_direction \"Right\"";

}  // namespace

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

}  // namespace longshort::server
