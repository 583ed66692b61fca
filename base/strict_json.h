// JSON from untrusted files, with limits on depth and size and without duplicate keys. JsonFields reads its fields,
// with errors for operators. DumpJson writes JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/json_scanner.h"
#include "base/memory_meter.h"
#include "nlohmann/json.hpp"

namespace longshort {

// Limits of each list in the value of a key, wherever the key stands.
struct JsonListLimit {
  std::string_view key;
  int64_t elements = 0;  // that are not numbers; also the keys of an object
  int64_t numbers = elements;
};

struct JsonLimits {
  // Nesting depth of objects and arrays.
  int64_t depth = 16;
  // Total number of keys, values, objects and arrays. It bounds the memory of the parsed document.
  int64_t elements = int64_t{1} << 20;
  // The same, but without numbers, booleans and nulls, which take less memory.
  int64_t parts = elements;
  absl::Span<const JsonListLimit> lists = {};
};

// Frees a document in place. Its destructor would first copy all lists.
void FreeJson(nlohmann::json& document);

// Builds the document of a JSON text. The meter counts what the document takes, and what reading it takes beside. All
// errors start with `name`. `limits.lists` must outlive the builder.
class JsonBuilder : protected JsonScanner {
 public:
  JsonBuilder(std::string_view text, std::string name, const JsonLimits& limits, MemoryMeter& meter);

  // Sets `document` to the text's object. Free it by FreeJson, also after an error.
  // Errors: those of ParseJsonObject; those of the meter.
  absl::Status Build(nlohmann::json& document);

 protected:
  // Reads the value of a member of the innermost open object.
  virtual absl::Status ReadMember(const std::string& /*key*/, nlohmann::json& value) { return ReadValue(value); }
  absl::Status ReadValue(nlohmann::json& value);
  absl::Status Refuse(std::string_view what) const;
  absl::Status Wrong(std::string_view what) const override;
  // The objects and arrays that are being read, outermost first.
  const std::vector<const nlohmann::json*>& open() const { return open_; }

 private:
  absl::Status Open(nlohmann::json& value, nlohmann::json empty, int64_t bytes);
  absl::Status ReadObject(nlohmann::json& value);
  absl::Status ReadArray(nlohmann::json& value);
  absl::Status ReadText(nlohmann::json& value);
  absl::Status Count(bool is_part);
  absl::Status CheckLength(int64_t elements, int64_t numbers) const;

  const std::string name_;
  const JsonLimits limits_;
  const JsonListLimit* list_ = nullptr;  // of the value that is being read
  std::vector<const nlohmann::json*> open_;
  int64_t elements_ = 0;
  int64_t parts_ = 0;
};

// Parses all of `text` as one JSON object.
// Errors: INVALID_ARGUMENT, starting with `name`, if it is not a JSON object in UTF-8, repeats a key in an object
// (naming the key), or exceeds a limit; those of the meter, if there is one.
absl::StatusOr<nlohmann::json> ParseJsonObject(std::string_view text, const std::string& name,
                                               const JsonLimits& limits = {}, MemoryMeter* meter = nullptr);

// JSON text on one line. Bytes of strings that are not UTF-8 become U+FFFD.
std::string DumpJson(const nlohmann::ordered_json& json);

// A number without a fraction, however it is written; nullopt if `value` is none, or not in the range of int64.
std::optional<int64_t> WholeNumber(const nlohmann::json& value);

// Quotes a string from a file for an error message: in single quotes, escaped, cut at 100 bytes.
std::string QuoteForMessage(std::string_view text);

// An object of a config.json. All errors are INVALID_ARGUMENT and name the file, the field and the value.
class JsonFields final {
 public:
  // `name` is the file's name in errors.
  static absl::StatusOr<JsonFields> Parse(std::string_view text, const std::string& name);

  // Returns an error naming the first field that is not in `known`, if there is one.
  absl::Status RefuseUnknown(absl::Span<const std::string_view> known) const;

  bool Has(std::string_view field) const { return document_.contains(field); }

  absl::StatusOr<int64_t> Integer(std::string_view field) const;
  absl::StatusOr<bool> Boolean(std::string_view field) const;
  // Any finite number.
  absl::StatusOr<double> Number(std::string_view field) const;
  absl::StatusOr<std::string> Text(std::string_view field) const;
  absl::StatusOr<std::vector<int64_t>> Integers(std::string_view field) const;
  absl::StatusOr<std::vector<double>> Numbers(std::string_view field) const;
  // The fields of a nested object. Errors name both.
  absl::StatusOr<JsonFields> Object(std::string_view field) const;
  // The index of the field's string in `choices`.
  absl::StatusOr<size_t> Choice(std::string_view field, absl::Span<const std::string_view> choices) const;

  // An error for an existing field whose value is not as `wanted` describes, for example "in 1..8".
  absl::Status OutOfRange(std::string_view field, std::string_view wanted) const;

 private:
  JsonFields(nlohmann::json document, std::string name) : document_(std::move(document)), name_(std::move(name)) {}

  absl::StatusOr<const nlohmann::json*> Find(std::string_view field) const;
  absl::Status Wrong(std::string_view field, const nlohmann::json& value, std::string_view wanted) const;

  nlohmann::json document_;
  std::string name_;
};

}  // namespace longshort
