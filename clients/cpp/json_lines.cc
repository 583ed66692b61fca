#include "clients/cpp/json_lines.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "base/utf8.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"

namespace longshort::client {
namespace {

std::string JsonOf(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string json;
  // Fails only for google.protobuf.Any, which longshort.v1 does not use.
  if (!google::protobuf::util::MessageToJsonString(message, &json, options).ok()) return "{}";
  return json;
}

// Removes "list":[] and one adjacent comma from the JSON. Inside a string, a backslash precedes the quote before the
// colon.
std::string WithoutEmptyLists(std::string json) {
  const std::string empty = "\":[]";
  for (size_t end = json.find(empty); end != std::string::npos; end = json.find(empty, end)) {
    if (json[end - 1] == '\\') {
      ++end;
      continue;
    }
    size_t begin = json.rfind('"', end - 1);
    size_t behind = end + empty.size();
    if (json[begin - 1] == ',') {
      --begin;
    } else if (json[behind] == ',') {
      ++behind;
    }
    json.erase(begin, behind - begin);
    end = begin;
  }
  return json;
}

std::string JsonString(const std::string& bytes) {
  google::protobuf::Value value;
  value.set_string_value(ValidUtf8(bytes));
  return JsonOf(value);
}

// Writes the object with the name and `about` before its fields.
void WriteNamed(const std::string& name, absl::string_view about, absl::string_view object, std::ostream& output) {
  output << "{\"name\":" << JsonString(name) << about << (object == "{}" ? "" : ",") << object.substr(1) << "\n"
         << std::flush;
}

}  // namespace

std::string ValidUtf8(absl::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const std::optional<Utf8Character> character = FirstUtf8Character({bytes.data(), bytes.size()});
    const size_t length = character.has_value() ? static_cast<size_t>(character->bytes) : 1;
    absl::StrAppend(&text, character.has_value() ? bytes.substr(0, length) : absl::string_view("\uFFFD"));
    bytes.remove_prefix(length);
  }
  return text;
}

void WriteJsonLine(const google::protobuf::Message& message, std::ostream& output) {
  output << JsonOf(message) << "\n" << std::flush;
}

void WriteNamedJsonLine(const std::string& name, const google::protobuf::Message& message, std::ostream& output) {
  WriteNamed(name, "", JsonOf(message), output);
}

void WriteAnswerJsonLine(const std::string& name, const v1::Model& weights, const v1::ModelSelector* model,
                         const google::protobuf::Message& message, std::ostream& output) {
  std::string about;
  if (model != nullptr && !model->name().empty()) absl::StrAppend(&about, ",\"model\":", JsonOf(*model));
  if (!weights.fingerprint().empty()) absl::StrAppend(&about, ",\"fingerprint\":", JsonString(weights.fingerprint()));
  if (!weights.precision().empty()) absl::StrAppend(&about, ",\"precision\":", JsonString(weights.precision()));
  WriteNamed(name, about, WithoutEmptyLists(JsonOf(message)), output);
}

void WriteErrorJsonLine(const std::string& name, const v1::ItemError& error, std::ostream& output) {
  WriteNamed(name, "", absl::StrCat("{\"error\":", JsonOf(error), "}"), output);
}

}  // namespace longshort::client
