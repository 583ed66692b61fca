#include <cmath>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "server/call/message_size.h"
#include "server/calls/call_names.h"
#include "server/fronts/open_inference/bytes_tensor.h"
#include "server/fronts/open_inference/rest_messages.h"

namespace longshort::server {
namespace {

constexpr int64_t kUnknown = -1;

std::string Listed(absl::Span<const int64_t> sizes) { return absl::StrCat("[", absl::StrJoin(sizes, ", "), "]"); }

}  // namespace

RestData::RestData(std::string place, std::string_view datatype, int64_t max_bytes, MemoryMeter& meter)
    : place_(std::move(place)), max_bytes_(max_bytes), meter_(&meter) {
  if (datatype == "BYTES") kind_ = Kind::kBytes;
  if (datatype == "INT32") kind_ = Kind::kInt32;
  if (datatype == "UINT8") kind_ = Kind::kUint8;
  if (datatype == "FP32") kind_ = Kind::kFp32;
}

absl::Status RestData::StartArray() {
  constexpr size_t kMaxSizes = 8;
  const size_t level = counts_.size();
  if (element_level_ != 0 && level >= element_level_) return Ragged();
  if (level == kMaxSizes) {
    return absl::InvalidArgumentError(absl::StrCat(place_, " is nested deeper than ", kMaxSizes, " arrays"));
  }
  if (level > 0) ++counts_.back();
  counts_.push_back(0);
  if (sizes_.size() < counts_.size()) sizes_.push_back(kUnknown);
  return absl::OkStatus();
}

absl::Status RestData::EndArray() {
  int64_t& size = sizes_[counts_.size() - 1];
  if (size != kUnknown && size != counts_.back()) return Ragged();
  size = counts_.back();
  counts_.pop_back();
  return absl::OkStatus();
}

absl::Status RestData::CountElement(size_t bytes) {
  if (element_level_ == 0) element_level_ = counts_.size();
  if (element_level_ != counts_.size() || sizes_.size() > element_level_) return Ragged();
  ++counts_.back();
  ++elements_;
  if (static_cast<int64_t>(raw_.size()) <= max_bytes_) return meter_->MakeRoom(raw_, bytes);
  return absl::ResourceExhaustedError(
      absl::StrCat("the inputs have more than ", max_bytes_, " bytes, the limit of a message"));
}

absl::Status RestData::Ragged() const {
  return absl::InvalidArgumentError(
      absl::StrCat(place_, " is ragged: after ", elements_,
                   " elements the arrays are not as long or as deep as those before; send them flat, or all alike"));
}

absl::Status RestData::WrongElement(const std::string& shown) const {
  const auto wanted = [this] {
    switch (kind_) {
      case Kind::kBytes:
        return "a string, because the datatype is BYTES; what is not UTF-8 can be sent as binary data";
      case Kind::kInt32:
        return "a whole number from -2147483648 to 2147483647, because the datatype is INT32";
      case Kind::kUint8:
        return "a whole number from 0 to 255, because the datatype is UINT8";
      default:
        return "a number in the range of 32-bit floating point, because the datatype is FP32";
    }
  };
  return FieldError(absl::StrCat(place_, "[", elements_ - 1, "]"), shown, wanted());
}

template <typename Value, typename Number>
absl::Status RestData::AppendWhole(Number number) {
  if constexpr (std::is_integral_v<Number>) {  // Add(double) makes others whole
    if (std::in_range<Value>(number)) {
      const auto value = static_cast<Value>(number);
      raw_.append(reinterpret_cast<const char*>(&value), sizeof(value));
      return absl::OkStatus();
    }
  }
  return WrongElement(absl::StrCat(number));
}

template <typename Number>
absl::Status RestData::AppendNumber(Number number) {
  LS_RETURN_IF_ERROR(CountElement(is_known() ? sizeof(int32_t) : 0));
  switch (kind_) {
    case Kind::kBytes:
      return WrongElement(absl::StrCat(number));
    case Kind::kInt32:
      return AppendWhole<int32_t>(number);
    case Kind::kUint8:
      return AppendWhole<uint8_t>(number);
    case Kind::kFp32: {
      const auto value = static_cast<float>(number);
      if (!std::isfinite(value)) return WrongElement(absl::StrCat(number));
      raw_.append(reinterpret_cast<const char*>(&value), sizeof(value));
      return absl::OkStatus();
    }
    case Kind::kOther:
      break;
  }
  return absl::OkStatus();
}

absl::Status RestData::Add(double number) {
  if (kind_ == Kind::kFp32) return AppendNumber(number);
  const std::optional<int64_t> whole = IntegerOf(number);
  return whole.has_value() ? AppendNumber(*whole) : AddOther(absl::StrCat(number));
}
absl::Status RestData::Add(int64_t number) { return AppendNumber(number); }
absl::Status RestData::Add(uint64_t number) { return AppendNumber(number); }

absl::Status RestData::Add(const std::string& text) {
  if (kind_ != Kind::kBytes) return AddOther(Quoted(text));
  LS_RETURN_IF_ERROR(CountElement(sizeof(int32_t) + text.size()));
  AppendBytesElement(text, raw_);
  return absl::OkStatus();
}

absl::Status RestData::AddOther(const std::string& shown) {
  LS_RETURN_IF_ERROR(CountElement(0));
  return is_known() ? WrongElement(shown) : absl::OkStatus();
}

absl::Status RestData::CheckShape(absl::Span<const int64_t> shape) const {
  if (absl::MakeConstSpan(sizes_) == shape) return absl::OkStatus();
  if (sizes_.size() > 1) {
    return FieldError(absl::StrCat("the nesting of ", place_), Listed(sizes_),
                      absl::StrCat(Listed(shape), ", as the shape says, or flat"));
  }
  int64_t wanted = 1;
  for (const int64_t size : shape) {
    if (size < 1 || wanted > std::numeric_limits<int64_t>::max() / size) return absl::OkStatus();  // a wrong shape
    wanted *= size;
  }
  if (wanted == elements_) return absl::OkStatus();
  return FieldError(absl::StrCat("the number of elements of ", place_), elements_,
                    absl::StrCat(wanted, ", as the shape ", Listed(shape), " says"));
}

namespace {

using nlohmann::json;

constexpr JsonListLimit kShapes[] = {{.key = "shape", .elements = 8}};
// The limits of the document without its data.
constexpr JsonLimits kLimits = {.elements = int64_t{1} << 16, .parts = kMaxElements, .lists = kShapes};

// What data takes beside its elements: a node of RestDocument's map, the place, and the sizes of up to 8 nested arrays.
constexpr int64_t kDataBytes = HeapBytes(4 * sizeof(void*) + sizeof(std::pair<const size_t, RestData>)) +
                               HeapBytesOfText(30) + 2 * HeapBytes(8 * sizeof(int64_t));

class DocumentReader final : public JsonBuilder {
 public:
  DocumentReader(std::string_view text, int64_t max_bytes, MemoryMeter& meter, RestDocument& document)
      : JsonBuilder(text, "the request", kLimits, meter), max_bytes_(max_bytes), document_(document) {}

  absl::Status Read() {
    const int64_t before = meter_.held();
    LS_RETURN_IF_ERROR(Build(document_.root));
    for (const auto& [input, place] : skipped_) {
      ReadAgain(place);
      LS_RETURN_IF_ERROR(ReadData(input, document_.root.at("inputs").at(input)));
    }
    meter_.Remove(HeapBytesOfText(text_.capacity()));
    document_.root_bytes = meter_.held() - before;
    for (const auto& [input, data] : document_.data) document_.root_bytes -= data.raw_bytes();
    return absl::OkStatus();
  }

 private:
  absl::Status ReadMember(const std::string& key, json& value) override {
    if (open().size() == 1) in_inputs_ = key == "inputs";
    const bool is_data = open().size() == 3 && in_inputs_ && open()[1]->is_array() && key == "data";
    if (!is_data) return ReadValue(value);
    const size_t input = open()[1]->size() - 1;
    if (!NextIs('[')) return Refuse(absl::StrCat("inputs[", input, "].data is not an array"));
    if (open()[2]->contains("datatype")) return ReadData(input, *open()[2]);
    skipped_.emplace_back(input, next());  // until the datatype is known
    return SkipNested();
  }

  absl::Status ReadData(size_t input, const json& object) {
    LS_RETURN_IF_ERROR(meter_.Add(kDataBytes));
    const auto datatype = object.find("datatype");
    const bool is_text = datatype != object.end() && datatype->is_string();
    return ReadList(document_.data
                        .try_emplace(input, absl::StrCat("inputs[", input, "].data"),
                                     is_text ? datatype->get_ref<const std::string&>() : "", max_bytes_, meter_)
                        .first->second);
  }

  absl::Status ReadList(RestData& data) {
    Take('[');
    LS_RETURN_IF_ERROR(data.StartArray());
    if (Take(']')) return data.EndArray();
    do {
      LS_RETURN_IF_ERROR(ReadElement(data));
    } while (Take(','));
    return Take(']') ? data.EndArray() : WrongKind("a comma or the end of the list");
  }

  absl::Status ReadElement(RestData& data) {
    if (NextIs('[')) return ReadList(data);
    if (NextIs('{')) return Refuse("an object within the data of an input");
    if (NextIs('"')) {
      LS_RETURN_IF_ERROR(ReadString(text_));
      return data.Add(text_);
    }
    for (const char* const word : {"null", "true", "false"}) {
      if (TakeWord(word)) return data.AddOther(word);
    }
    JsonNumber number;
    LS_RETURN_IF_ERROR(ReadNumber(number));
    return std::visit([&data](auto known) { return data.Add(known); }, number);
  }

  const int64_t max_bytes_;
  RestDocument& document_;
  std::vector<std::pair<size_t, const char*>> skipped_;  // inputs, and where their data begin
  std::string text_;                                     // of one element
  bool in_inputs_ = false;
};

}  // namespace

absl::Status ParseRestDocument(std::string_view text, int64_t max_bytes, MemoryMeter& meter, RestDocument& document) {
  return DocumentReader(text, max_bytes, meter, document).Read();
}

}  // namespace longshort::server
