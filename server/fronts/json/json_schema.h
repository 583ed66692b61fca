// Tables of the fields of JSON objects, for readers of bodies and for /openapi.json.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace longshort::server {

// One field of a JSON object.
//
// A type is "string", "integer", "number", "boolean", "bytes" or "any"; "a|b", one of these words; "[TYPE]", a list;
// "{TYPE}", an object with such values; "TYPE?", which may be null; the name of a NamedSchema; or a JSON schema, which
// begins with {".
struct SchemaField {
  std::string_view name;
  std::string_view type;
  std::string_view help;
  std::optional<double> preset = std::nullopt;  // the value of a number or flag (0 or 1) that is absent
  std::optional<double> low = std::nullopt;
  bool required = false;  // in a request, where fields are optional
  bool optional = false;  // in an answer, where fields are required
};

enum class BodyKind { kRequest, kAnswer };

// A JSON object that other schemas and bodies name.
struct NamedSchema {
  std::string_view name;
  BodyKind kind = BodyKind::kAnswer;
  std::vector<SchemaField> fields = {};
};

}  // namespace longshort::server
