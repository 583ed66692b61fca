#include "server/open_inference_v2/rest_document.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/calls/field_error.h"

namespace longshort::server {
namespace {

using nlohmann::json;

// Limits of the document without its data.
constexpr size_t kMaxDepth = 16;
constexpr int64_t kMaxElements = int64_t{1} << 16;

std::string GivenDatatype(const json& input) {
  const auto found = input.find("datatype");
  return found != input.end() && found->is_string() ? found->get<std::string>() : "";
}

// Receives the parser's events. An event that returns false ends the parse; error() says why.
class DocumentBuilder final : public nlohmann::json_sax<json> {
 public:
  // `datatypes`: of the inputs, as far as they are known from an earlier parse.
  DocumentBuilder(int64_t max_bytes, std::vector<std::string> datatypes)
      : max_bytes_(max_bytes), datatypes_(std::move(datatypes)) {}

  const absl::Status& error() const { return error_; }
  // Whether some data came before its datatype, so that it was not kept.
  bool needs_datatypes() const { return needs_datatypes_; }
  RestDocument& document() { return document_; }

  // The parser's events:
  bool null() override { return InData() ? Note(data_->AddOther("null")) : AddScalar(nullptr); }
  bool boolean(bool value) override {
    return InData() ? Note(data_->AddOther(value ? "true" : "false")) : AddScalar(value);
  }
  bool number_integer(number_integer_t value) override {
    return InData() ? Note(data_->Add(int64_t{value})) : AddScalar(value);
  }
  bool number_unsigned(number_unsigned_t value) override {
    return InData() ? Note(data_->Add(uint64_t{value})) : AddScalar(value);
  }
  bool number_float(number_float_t value, const string_t& /*text*/) override {
    return InData() ? Note(data_->Add(value)) : AddScalar(value);
  }
  bool string(string_t& value) override { return InData() ? Note(data_->Add(value)) : AddScalar(std::move(value)); }
  bool binary(binary_t& /*value*/) override { return Refuse("has binary values"); }

  bool start_object(std::size_t /*size*/) override {
    if (InData()) return Refuse("has an object within the data of an input");
    return Open(json::object());
  }
  bool end_object() override { return Close(); }
  bool start_array(std::size_t /*size*/) override {
    if (begins_data_) StartData();
    if (InData()) return Note(data_->StartArray());
    return Open(json::array());
  }
  bool end_array() override {
    if (!InData()) return Close();
    const bool is_well = Note(data_->EndArray());
    if (!data_->open()) data_ = nullptr;
    return is_well;
  }

  bool key(string_t& name) override {
    json& object = *open_.back();
    if (object.contains(name)) return Refuse(absl::StrCat("has the key ", Quoted(name), " twice in one object"));
    slot_ = &object[name];
    if (open_.size() == 1) in_inputs_ = name == "inputs";
    begins_data_ = open_.size() == 3 && in_inputs_ && open_[1]->is_array() && name == "data";
    return true;
  }

  bool parse_error(std::size_t position, const std::string& /*token*/, const json::exception& error) override {
    constexpr int kNumberOutOfRange = 406;
    const char* what = error.id == kNumberOutOfRange ? "has a number that is out of range" : "is not valid JSON";
    return Refuse(absl::StrCat(what, " at byte ", position));
  }

 private:
  bool Refuse(const std::string& why) { return Note(absl::InvalidArgumentError(absl::StrCat("the request ", why))); }
  bool Note(absl::Status status) {
    if (!status.ok()) error_ = std::move(status);
    return error_.ok();
  }

  bool InData() const { return data_ != nullptr; }

  void StartData() {
    begins_data_ = false;
    const size_t input = open_[1]->size() - 1;
    std::string datatype = GivenDatatype(*open_[2]);
    if (datatype.empty() && input < datatypes_.size()) datatype = datatypes_[input];
    if (datatype.empty()) needs_datatypes_ = true;
    data_ = &document_.data.emplace(input, RestData(absl::StrCat("inputs[", input, "].data"), datatype, max_bytes_))
                 .first->second;
  }

  // Puts a value where the next one belongs.
  json* Put(json value) {
    if (begins_data_) {
      Refuse(absl::StrCat("has inputs[", open_[1]->size() - 1, "].data that is not an array"));
      return nullptr;
    }
    if (++elements_ > kMaxElements) {
      Refuse(absl::StrCat("has more than ", kMaxElements, " elements beside the data of inputs"));
      return nullptr;
    }
    if (open_.empty()) {
      document_.root = std::move(value);
      return &document_.root;
    }
    if (open_.back()->is_array()) {
      open_.back()->push_back(std::move(value));
      return &open_.back()->back();
    }
    *slot_ = std::move(value);
    return slot_;
  }
  bool AddScalar(json value) { return Put(std::move(value)) != nullptr; }
  bool Open(json container) {
    if (open_.size() == kMaxDepth) return Refuse(absl::StrCat("is nested deeper than ", kMaxDepth));
    json* const placed = Put(std::move(container));
    if (placed == nullptr) return false;
    open_.push_back(placed);
    return true;
  }
  bool Close() {
    open_.pop_back();
    return true;
  }

  const int64_t max_bytes_;
  const std::vector<std::string> datatypes_;
  RestDocument document_;
  std::vector<json*> open_;   // objects and arrays, outermost first
  json* slot_ = nullptr;      // of the last key
  RestData* data_ = nullptr;  // that is being read
  bool in_inputs_ = false;
  bool begins_data_ = false;  // the next value is the data of an input
  bool needs_datatypes_ = false;
  int64_t elements_ = 0;
  absl::Status error_;
};

}  // namespace

absl::StatusOr<RestDocument> ParseRestDocument(std::string_view text, int64_t max_bytes) {
  // The parser would ignore everything after a NUL.
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos) {
    return absl::InvalidArgumentError(absl::StrCat("the request is not valid JSON at byte ", nul + 1));
  }
  std::vector<std::string> datatypes;
  while (true) {
    DocumentBuilder builder(max_bytes, datatypes);
    json::sax_parse(text, &builder);
    LS_RETURN_IF_ERROR(builder.error());
    RestDocument& document = builder.document();
    if (!document.root.is_object()) return absl::InvalidArgumentError("the request is not a JSON object");
    if (!builder.needs_datatypes() || !datatypes.empty()) return std::move(document);
    for (const json& input : document.root.at("inputs")) datatypes.push_back(GivenDatatype(input));
  }
}

}  // namespace longshort::server
