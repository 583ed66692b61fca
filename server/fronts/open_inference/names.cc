#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "server/fronts/open_inference/open_inference.h"

namespace longshort::server {
namespace {

// A field that is not a parameter of the same name.
struct OwnName {
  std::string_view field;
  const char* name = nullptr;
  const char* element = nullptr;  // the name of one element
};

constexpr OwnName kOwnNames[] = {
    {"model.name", "model_name"},
    {"model.version", "model_version"},
    {"inputs", "documents", kDocumentInput},
    {"input", kDocumentInput},
    {"second_inputs", "second documents", kSecondDocumentInput},
    {"second_input", kSecondDocumentInput},
    {"prompt", kPromptInput},
    {"images", "images", kImageInput},
    {"top_k", "parameters.classification"},
    {"all_logits", "logits"},
    {"top_alternatives", "0"},  // not available in this protocol
};

std::string NameOf(const FieldPath& path) {
  const auto* const own = std::find_if(std::begin(kOwnNames), std::end(kOwnNames),
                                       [&](const OwnName& one) { return one.field == path.field; });
  std::string name;
  if (own == std::end(kOwnNames)) {
    absl::StrAppend(&name, "parameters.", std::string(path.field.substr(path.field.rfind('.') + 1)));
  } else {
    name = path.index.has_value() && own->element != nullptr ? own->element : own->name;
  }
  if (path.index.has_value()) absl::StrAppend(&name, "[", *path.index, "]");
  if (path.id_index.has_value()) absl::StrAppend(&name, " (token ", *path.id_index, ")");
  return name;
}

}  // namespace

constexpr FieldVocabulary kOpenInferenceVocabulary = {.name_of = NameOf,
                                                      .text_kinds = "text or token ids",
                                                      .image_kinds = "the bytes of an image, or pixels",
                                                      .streaming_rpc = "ModelStreamInfer"};

}  // namespace longshort::server
