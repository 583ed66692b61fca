// The JSON bodies of the room's requests. A row of a table says how a field is read and checked, and what /openapi.json
// says of it. Fields that no table has are ignored, because clients add some.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/memory_meter.h"
#include "base/status_macros.h"
#include "base/strict_json.h"
#include "nlohmann/json.hpp"
#include "server/calls/call_parts.h"
#include "server/calls/request_limits.h"
#include "server/fronts/json/json_schema.h"

namespace longshort::server {

// A text, or token ids.
using Prompt = std::variant<std::string, std::vector<int32_t>>;
TextInput ViewOf(const Prompt& prompt);
inline TextInput ViewOf(const std::string& text) { return {.kind = TextInput::Kind::kText, .text = text}; }

// The limit of a field of at most `most` texts.
inline JsonListLimit LimitOfTexts(std::string_view field, int64_t most, const RequestLimits& limits) {
  return {.key = field, .elements = most, .numbers = limits.prompt_tokens};
}

// The JSON of a body, whose texts and token ids move into the request.
class JsonRequest final {
 public:
  // The meter counts the document until the destructor frees it, and the request beyond that.
  JsonRequest(MemoryMeter& meter, absl::Span<const JsonListLimit> lists) : meter_(meter), lists_(lists) {}
  JsonRequest(const JsonRequest&) = delete;
  JsonRequest& operator=(const JsonRequest&) = delete;
  ~JsonRequest();

  // Errors: INVALID_ARGUMENT if the body is no JSON object, repeats a key, is nested too deeply, or has too long a
  // list; the meter's.
  absl::Status Parse(std::string_view body);

  // A field of the body.
  JsonView At(std::string_view field) { return JsonView(document_).At(field); }

  // Reserves room in a list of the request.
  template <typename List>
  absl::Status MakeRoom(List& list, size_t elements) {
    return meter_.MakeRoom(list, elements);
  }
  // These read a part of the request. Errors: JsonView::Wrong if the value is not of this kind; the meter's.
  absl::Status MoveText(const JsonView& text, std::string_view wanted, std::string& to);
  absl::Status ReadTokenIds(const JsonView& list, std::vector<int32_t>& ids);
  // A text, token ids, or a list of either.
  absl::Status ReadPrompts(const JsonView& value, std::vector<Prompt>& prompts);

 private:
  MemoryMeter& meter_;
  const absl::Span<const JsonListLimit> lists_;
  nlohmann::json document_;
  int64_t document_bytes_ = 0;
};

// The JSON schema of what ReadPrompts reads.
extern const char kPromptsType[];

// These read the value of a field without a reader of its own, by what its schema says. A value that is absent, and has
// neither a preset nor must be there, leaves `to` as it is.
absl::Status ReadValue(JsonRequest& json, const JsonView& value, const SchemaField& schema, bool& to);
absl::Status ReadValue(JsonRequest& json, const JsonView& value, const SchemaField& schema, int64_t& to);
absl::Status ReadValue(JsonRequest& json, const JsonView& value, const SchemaField& schema, double& to);
absl::Status ReadValue(JsonRequest& json, const JsonView& value, const SchemaField& schema, std::string& to);

// One row. `Place` is where the request has the value: a pointer to its member, or a function that returns a reference.
template <typename Request>
struct RequestField {
  template <typename Place>
  static RequestField Of(const SchemaField& schema, Place place) {
    return {schema, [schema, place](JsonRequest& json, const JsonView& value, Request& request) {
              return ReadValue(json, value, schema, std::invoke(place, request));
            }};
  }
  static RequestField Model(std::string_view help) { return Of({"model", "string", help}, &Request::model); }
  template <typename Place>
  static RequestField Flag(std::string_view name, std::string_view help, Place place, bool preset = false) {
    return Of({.name = name, .type = "boolean", .help = help, .preset = preset ? 1 : 0}, place);
  }
  template <typename Place>
  static RequestField Integer(std::string_view name, std::string_view help, Place place, double preset, double low) {
    return Of({.name = name, .type = "integer", .help = help, .preset = preset, .low = low}, place);
  }
  template <typename Place>
  static RequestField Number(std::string_view name, std::string_view help, Place place, double preset) {
    return Of({.name = name, .type = "number", .help = help, .preset = preset}, place);
  }

  SchemaField schema;
  // Reads the value, which may be absent.
  std::function<absl::Status(JsonRequest& json, const JsonView& value, Request& request)> read;
};

// A field that would change the answer, and that the models do not support.
struct RefusedField {
  std::string_view field;
  const char* why;
  // A JSON list of values with which the field changes nothing: clients that send their defaults are served.
  const char* neutral = "[]";
};

template <typename Request>
struct RequestBody {
  std::string_view name;  // of its schema
  std::vector<RequestField<Request>> fields;
  std::vector<RefusedField> refused = {};

  NamedSchema Schema() const {
    NamedSchema schema{.name = name, .kind = BodyKind::kRequest};
    for (const auto& row : fields) schema.fields.push_back(row.schema);
    return schema;
  }
  bool Has(std::string_view field) const {
    for (const auto& row : fields) {
      if (row.schema.name == field) return true;
    }
    for (const RefusedField& row : refused) {
      if (row.field == field) return true;
    }
    return false;
  }
};

// Errors: INVALID_ARGUMENT if the body has one of these fields with another value than the neutral ones.
absl::Status RefuseFields(absl::Span<const RefusedField> refused, JsonRequest& json);

// Reads the text of a body, in the order of the table. `lists` limits its lists. The meter counts what the request
// takes. Errors: those of JsonRequest::Parse; INVALID_ARGUMENT naming the field, its value and what it must be.
template <typename Request>
absl::Status ReadJsonBody(const RequestBody<Request>& body, std::string_view text,
                          absl::Span<const JsonListLimit> lists, MemoryMeter& meter, Request& request) {
  JsonRequest json(meter, lists);
  LS_RETURN_IF_ERROR(json.Parse(text));
  LS_RETURN_IF_ERROR(RefuseFields(body.refused, json));
  for (const auto& row : body.fields) LS_RETURN_IF_ERROR(row.read(json, json.At(row.schema.name), request));
  return absl::OkStatus();
}

// Reads `truncation_direction` after `truncate`. The server cuts texts at their end only: to the left, it cuts none, so
// that a text that is too long is an error, which says how to cut it.
absl::Status ReadDirection(const JsonView& value, bool& truncate);

// Adds the fields `truncate` and `truncation_direction`, as Text Embeddings Inference has them.
template <typename Request>
RequestBody<Request> WithTruncation(RequestBody<Request> body) {
  body.fields.push_back(RequestField<Request>::Flag(
      "truncate", "Cuts a text that is too long at its end; otherwise it is an error.", &Request::truncate));
  body.fields.push_back(
      {{"truncation_direction", "Right|Left", "With \"Left\", a text that is too long is an error."},
       [](JsonRequest&, const JsonView& value, Request& request) { return ReadDirection(value, request.truncate); }});
  return body;
}

// The first word of an error's message that is a field's name; most errors begin with it.
std::optional<std::string_view> FieldIn(std::string_view message,
                                        absl::FunctionRef<bool(std::string_view word)> is_field);

}  // namespace longshort::server
