// Requests and answers of inference in the protocol's REST form: JSON, and behind it the binary data of inputs or
// outputs; and the fields of all bodies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/memory_meter.h"
#include "base/strict_json.h"
#include "nlohmann/json.hpp"
#include "open_inference/v2/service.pb.h"
#include "server/fronts/json/json_schema.h"

namespace longshort::server {

// Which outputs the answer has as binary data behind its JSON.
struct BinaryOutputs {
  bool by_default = false;
  std::map<std::string, bool> by_name;

  bool Has(const std::string& name) const {
    const auto found = by_name.find(name);
    return found == by_name.end() ? by_default : found->second;
  }
};

// Reads a request whose inputs have together at most `max_bytes`. `request` has the model's name and version already,
// and gets raw contents for all inputs. Errors: INVALID_ARGUMENT; RESOURCE_EXHAUSTED for larger inputs; the meter's.
absl::Status ReadRestRequest(std::string_view json, std::string_view binary, int64_t max_bytes, MemoryMeter& meter,
                             inference::ModelInferRequest& request, BinaryOutputs& outputs);

struct RestAnswer {
  std::string body;
  // The length of the JSON; nullopt if the body has no binary data.
  std::optional<size_t> json_bytes;
};

// REQUIRES: `answer` has raw contents. Errors: INVALID_ARGUMENT for contents that JSON cannot have and that are not
// requested as binary data; INTERNAL.
absl::StatusOr<RestAnswer> WriteRestAnswer(const inference::ModelInferResponse& answer, const BinaryOutputs& binary);

enum class RestBody { kInferRequest, kInput, kRequestedOutput, kIndexRequest, kLoadRequest };

// Errors: INVALID_ARGUMENT for what is no object, or has a field that such a body does not have.
absl::Status CheckFields(const JsonView& object, RestBody body);

// The bodies of requests, and of answers that are no messages.
const std::vector<NamedSchema>& RestSchemas();

// The JSON of an inference request. The `data` of inputs, which may have millions of elements, are not kept as JSON.

// The `data` of one input in a JSON request: its elements as raw_input_contents has them, and how its arrays nest.
//
// The functions are called in the order of the JSON text. Errors: INVALID_ARGUMENT with the element, its value and the
// rule; RESOURCE_EXHAUSTED for more than `max_bytes`; the meter's.
class RestData final {
 public:
  // `place` names the data in errors. Elements of a datatype that models do not take are counted, but not kept. The
  // meter counts what is kept; it must outlive this.
  RestData(std::string place, std::string_view datatype, int64_t max_bytes, MemoryMeter& meter);

  absl::Status StartArray();
  absl::Status EndArray();
  absl::Status Add(double number);
  absl::Status Add(int64_t number);
  absl::Status Add(uint64_t number);
  absl::Status Add(const std::string& text);
  // An element that no datatype has, such as null.
  absl::Status AddOther(const std::string& shown);

  // Whether an array is open.
  bool open() const { return !counts_.empty(); }
  bool is_known() const { return kind_ != Kind::kOther; }
  // Errors: unless the data is flat with as many elements as the shape has, or nested as the shape is.
  absl::Status CheckShape(absl::Span<const int64_t> shape) const;
  // The bytes that the memory meter counts.
  int64_t raw_bytes() const { return HeapBytesOfText(raw_.capacity()); }
  std::string TakeRaw() { return std::move(raw_); }

 private:
  enum class Kind { kBytes, kInt32, kUint8, kFp32, kOther };

  // Counts an element, and makes room for `bytes` of it.
  absl::Status CountElement(size_t bytes);
  absl::Status WrongElement(const std::string& shown) const;
  absl::Status Ragged() const;
  template <typename Value, typename Number>
  absl::Status AppendWhole(Number number);
  template <typename Number>
  absl::Status AppendNumber(Number number);

  std::string place_;
  Kind kind_ = Kind::kOther;
  int64_t max_bytes_;
  MemoryMeter* meter_;
  std::string raw_;
  int64_t elements_ = 0;
  std::vector<int64_t> sizes_;   // of the arrays of each level; -1: not known yet
  std::vector<int64_t> counts_;  // of the open arrays: what they have so far
  size_t element_level_ = 0;     // how deep elements are; 0: not known yet
};

struct RestDocument {
  RestDocument() = default;
  RestDocument(const RestDocument&) = delete;
  RestDocument& operator=(const RestDocument&) = delete;
  ~RestDocument() { FreeJson(root); }

  // An object. Where an input has `data`, its value here is null.
  nlohmann::json root;
  int64_t root_bytes = 0;  // of what the meter counts: all but the data
  // By the input's index.
  std::map<size_t, RestData> data;
};

// Sets `document`. The meter counts what it takes, and must outlive it.
// Errors: INVALID_ARGUMENT for what is not a JSON object in UTF-8, repeats a key in an object, is too deep or too large
// beside the data, or has a shape of more than 8 sizes; those of RestData; the meter's.
absl::Status ParseRestDocument(std::string_view text, int64_t max_bytes, MemoryMeter& meter, RestDocument& document);

}  // namespace longshort::server
