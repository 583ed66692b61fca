// JSON from untrusted files and clients, with limits on depth and size and without duplicate keys. JsonView reads its
// values, with errors for operators and clients. DumpJson writes JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
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
#include "nlohmann/json_fwd.hpp"

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

// A value of a document and its path, for reading it with errors that name both: "config.json: preprocessing.height is
// 0; it must be in 1..64". A field of a request that is null is absent, and 16.0 is an integer. Copies view the same
// document.
//
// Errors are INVALID_ARGUMENT.
class JsonView final {
 public:
  // Parses a file; the view and those made from it keep its document. `name` precedes the paths in errors.
  static absl::StatusOr<JsonView> Parse(std::string_view text, const std::string& name, const JsonLimits& limits = {});
  // Views the document of a request, which must outlive this view and those made from it.
  explicit JsonView(nlohmann::json& document) : JsonView(nullptr, &document, "") {}

  bool is_absent() const { return value_ == nullptr; }
  bool is_object() const;
  bool is_list() const;
  bool is_text() const;
  // REQUIRES: it is not absent.
  nlohmann::json& value() const { return *value_; }
  bool Is(std::string_view text) const;
  // The number of elements of a list, or of fields of an object; 0 for all else.
  size_t size() const;
  const std::string& path() const { return path_; }

  // A field; absent if this is no object, or does not have it.
  JsonView At(std::string_view field) const;
  // An element of a list. REQUIRES: index < size().
  JsonView At(size_t index) const;
  bool Has(std::string_view field) const { return !At(field).is_absent(); }
  // Returns an error for what is no object, and for a field that is not in `known`.
  absl::Status RefuseUnknown(absl::Span<const std::string_view> known) const;

  absl::StatusOr<bool> Boolean() const;
  // 64 bits, with a sign.
  absl::StatusOr<int64_t> Integer() const;
  absl::StatusOr<double> Number() const;
  // A view of the document's text.
  absl::StatusOr<std::string_view> Text() const;
  // The error for a value that is not as `wanted` describes, for example "in 1..8".
  absl::Status Wrong(std::string_view wanted) const;

  // The same of a field.
  absl::StatusOr<bool> Boolean(std::string_view field) const { return At(field).Boolean(); }
  absl::StatusOr<int64_t> Integer(std::string_view field) const { return At(field).Integer(); }
  absl::StatusOr<double> Number(std::string_view field) const { return At(field).Number(); }
  absl::StatusOr<std::string> Text(std::string_view field) const;
  absl::Status Wrong(std::string_view field, std::string_view wanted) const { return At(field).Wrong(wanted); }
  absl::StatusOr<std::vector<int64_t>> Integers(std::string_view field) const;
  absl::StatusOr<std::vector<double>> Numbers(std::string_view field) const;
  absl::StatusOr<JsonView> Object(std::string_view field) const;
  // The index of the field's string in `choices`.
  absl::StatusOr<size_t> Choice(std::string_view field, absl::Span<const std::string_view> choices) const;

 private:
  struct File;

  JsonView(std::shared_ptr<File> file, nlohmann::json* value, std::string path)
      : file_(std::move(file)), value_(value), path_(std::move(path)) {}

  std::string Shown() const;
  template <typename Value>
  absl::StatusOr<std::vector<Value>> List(std::string_view field, std::string_view wanted,
                                          absl::StatusOr<Value> (JsonView::*read)() const) const;

  std::shared_ptr<File> file_;  // nullptr: the document of a request
  nlohmann::json* value_;
  std::string path_;
};

}  // namespace longshort
