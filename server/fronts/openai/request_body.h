// Tables of the fields of the room's JSON bodies: a row says how a field is read and checked, and what /openapi.json
// says of it. Fields that no table has are ignored, because clients add some.
#pragma once

#include <google/protobuf/message.h>

#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "server/fronts/json/openapi.h"
#include "server/fronts/openai/json_request.h"

namespace longshort::server {

struct RequestField {
  static RequestField Text(std::string_view name, std::string_view help) { return {{name, "string", help}}; }
  static RequestField Flag(std::string_view name, std::string_view help, bool preset = false) {
    return {{.name = name, .type = "boolean", .help = help, .preset = preset ? 1 : 0}};
  }
  static RequestField Integer(std::string_view name, std::string_view help, std::optional<double> preset,
                              std::optional<double> low) {
    return {{.name = name, .type = "integer", .help = help, .preset = preset, .low = low}};
  }
  static RequestField Number(std::string_view name, std::string_view help, double preset) {
    return {{.name = name, .type = "number", .help = help, .preset = preset}};
  }

  SchemaField schema;
  // The field of the message that takes the value, "" for one that is only checked. By default the one of this name.
  const char* to = nullptr;
  // Reads what is more than a text, number or flag. The value may be absent.
  absl::Status (*read)(JsonRequest& json, const JsonView& value, google::protobuf::Message& message) = nullptr;
};

// A field that would change the answer, and that the models do not support.
struct RefusedField {
  std::string_view field;
  const char* why;
  // A JSON list of values with which the field changes nothing: clients that send their defaults are served.
  const char* neutral = "[]";
};

struct RequestBody {
  std::string_view name;  // of its schema
  std::vector<RequestField> fields;
  std::vector<RefusedField> refused = {};
};

// Reads the text of a body into a message, in the order of the table. `lists` limits its lists. The meter counts what
// the message takes. Errors: those of JsonRequest::Parse; INVALID_ARGUMENT naming the field, its value and what it must
// be.
absl::Status ReadBody(const RequestBody& body, std::string_view text, absl::Span<const JsonListLimit> lists,
                      MemoryMeter& meter, google::protobuf::Message& message);

NamedSchema SchemaOf(const RequestBody& body);

// Adds the fields `truncate` and `truncation_direction`, as Text Embeddings Inference has them.
RequestBody WithTruncation(RequestBody body);
// The JSON schema of what ReadPrompts reads.
extern const char kPromptsType[];

// The first field of these tables that an error's message names as a word of its own; most errors begin with it.
std::optional<std::string_view> FieldIn(std::string_view message, std::initializer_list<const RequestBody*> bodies);

}  // namespace longshort::server
