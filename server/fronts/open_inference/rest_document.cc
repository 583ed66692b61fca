#include "server/fronts/open_inference/rest_document.h"

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/call/message_size.h"

namespace longshort::server {
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
