#include <google/protobuf/descriptor.h>

#include <set>
#include <utility>
#include <vector>

#include "absl/container/fixed_array.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "server/call/message_size.h"
#include "server/calls/call_names.h"
#include "server/fronts/json/json_message.h"

namespace longshort::server {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr int kMaxDepth = 100;

class Reader final : public JsonValueReader {
 public:
  Reader(std::string_view json, const Descriptor& type, MemoryMeter& meter)
      : JsonValueReader(json, meter), type_(type) {}

  absl::Status Read(Message& message) {
    if (AtEnd()) return Wrong("the text is empty; a message without fields is {}");
    LS_RETURN_IF_ERROR(ReadMessage(message));
    return AtEnd() ? absl::OkStatus() : Wrong("something follows the message");
  }

 private:
  struct Step {
    const FieldDescriptor& field;
    int64_t index = -1;  // in a list
  };

  absl::Status Wrong(std::string_view what) const override {
    std::string where;
    for (const Step& step : path_) {
      absl::StrAppend(&where, where.empty() ? "" : ".", step.field.name());
      if (step.index >= 0) absl::StrAppend(&where, "[", step.index, "]");
    }
    return absl::InvalidArgumentError(absl::StrCat("the request is not a ", type_.full_name(), " in JSON: ", where,
                                                   where.empty() ? "" : ": ", std::string(what), ", at byte ",
                                                   place()));
  }
  absl::Status CountElement() {
    if (++elements_ <= kMaxElements) return absl::OkStatus();
    return Wrong(absl::StrCat("there are more than ", kMaxElements, " messages, strings and map entries"));
  }

  absl::Status ReadMessage(Message& message) {
    const Descriptor& type = *message.GetDescriptor();
    if (!Take('{')) return WrongKind("an object");
    if (++depth_ > kMaxDepth) return Wrong(absl::StrCat("nested deeper than ", kMaxDepth));
    LS_RETURN_IF_ERROR(CountElement());
    absl::FixedArray<bool, 64> seen(static_cast<size_t>(type.field_count()), false);
    if (!Take('}')) {
      do {
        LS_RETURN_IF_ERROR(ReadKey());
        const FieldDescriptor* field = Find(type, key_);
        if (field == nullptr) {
          if (TakeWord("null")) continue;  // absent, as every field that is null
          return Unknown(type);
        }
        if (std::exchange(seen[static_cast<size_t>(field->index())], true)) {
          return Wrong(absl::StrCat("the key ", field->name(), " occurs twice"));
        }
        path_.push_back({*field});
        LS_RETURN_IF_ERROR(ReadField(message, *field));
        path_.pop_back();
      } while (Take(','));
      if (!Take('}')) return WrongKind("a comma or the end of the object");
    }
    --depth_;
    return absl::OkStatus();
  }

  // Sets key_ and skips the colon.
  absl::Status ReadKey() {
    if (!NextIs('"')) return WrongKind("a key");
    LS_RETURN_IF_ERROR(ReadString(key_));
    return Take(':') ? absl::OkStatus() : WrongKind("a colon");
  }
  static const FieldDescriptor* Find(const Descriptor& type, const std::string& key) {
    for (int i = 0; i < type.field_count(); ++i) {
      if (type.field(i)->json_name() == key || type.field(i)->name() == key) return type.field(i);
    }
    return nullptr;
  }
  absl::Status Unknown(const Descriptor& type) const {
    std::vector<std::string> names;
    names.reserve(static_cast<size_t>(type.field_count()));
    for (int i = 0; i < type.field_count(); ++i) names.push_back(type.field(i)->name());
    const std::string all =
        names.empty() ? "there are none" : absl::StrCat("the fields are ", absl::StrJoin(names, ", "));
    return Wrong(absl::StrCat("unknown field ", Quoted(key_), "; ", all));
  }

  absl::Status ReadField(Message& message, const FieldDescriptor& field) {
    if (TakeWord("null")) return absl::OkStatus();
    if (field.is_map()) return ReadMap(message, field);
    if (field.is_repeated()) return ReadList(message, field);
    const auto* oneof = field.real_containing_oneof();
    if (oneof != nullptr && message.GetReflection()->HasOneof(message, oneof)) {
      return Wrong(absl::StrCat("another field of the same oneof, ", oneof->name(), ", is set, too"));
    }
    return ReadValue(message, field);
  }

  absl::Status ReadList(Message& message, const FieldDescriptor& field) {
    if (!Take('[')) return WrongKind("a list");
    if (Take(']')) return absl::OkStatus();
    RepeatedArray array(field);
    do {
      ++path_.back().index;
      LS_RETURN_IF_ERROR(array.Add(1, false, meter_));
      if (field.cpp_type() == FieldDescriptor::CPPTYPE_STRING) LS_RETURN_IF_ERROR(CountElement());
      LS_RETURN_IF_ERROR(ReadValue(message, field));
    } while (Take(','));
    if (!Take(']')) return WrongKind("a comma or the end of the list");
    path_.back().index = -1;
    return absl::OkStatus();
  }

  absl::Status ReadMap(Message& message, const FieldDescriptor& field) {
    const FieldDescriptor& key = *field.message_type()->map_key();
    // Until all are read, a key is in a node of a set, which has a color and three pointers beside it. With the first
    // look into the map, protobuf copies the entries' messages to a table, and keeps them.
    constexpr int64_t kKeyBytes = HeapBytes(4 * sizeof(void*) + sizeof(std::string)), kEntryBytes = 48;
    std::set<std::string> keys;
    int64_t bytes_of_keys = 0;
    RepeatedArray entries(field), table(field, true);
    if (!Take('{')) return WrongKind("an object");
    if (Take('}')) return absl::OkStatus();
    do {
      LS_RETURN_IF_ERROR(CountElement());
      LS_RETURN_IF_ERROR(ReadKey());
      const int64_t bytes_of_text = HeapBytesOfText(key_.size());
      const int64_t in_message =
          key.cpp_type() == FieldDescriptor::CPPTYPE_STRING ? kStringBytes + 2 * bytes_of_text : 0;
      bytes_of_keys += kKeyBytes + bytes_of_text;
      LS_RETURN_IF_ERROR(entries.Add(1, false, meter_));
      LS_RETURN_IF_ERROR(table.Add(1, false, meter_));
      LS_RETURN_IF_ERROR(
          meter_.Add(kKeyBytes + bytes_of_text + kEntryBytes + in_message + MapNodeBytes(*field.message_type())));
      Message& entry = *message.GetReflection()->AddMessage(&message, &field);
      LS_RETURN_IF_ERROR(PutKey(key_, {entry, key}));
      // Keys of a number may have several texts: their values count.
      if (!keys.insert(key.cpp_type() == FieldDescriptor::CPPTYPE_STRING ? key_ : KeyText(entry, key)).second) {
        return Wrong(absl::StrCat("the key ", Quoted(key_), " occurs twice"));
      }
      LS_RETURN_IF_ERROR(ReadValue(entry, *field.message_type()->map_value()));
    } while (Take(','));
    meter_.Remove(bytes_of_keys);
    return Take('}') ? absl::OkStatus() : WrongKind("a comma or the end of the object");
  }

  absl::Status ReadValue(Message& message, const FieldDescriptor& field) {
    if (field.cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) return ReadScalar({message, field});
    const Reflection& reflection = *message.GetReflection();
    LS_RETURN_IF_ERROR(meter_.Add(ObjectBytes(*field.message_type())));
    return ReadMessage(
        *(field.is_repeated() ? reflection.AddMessage(&message, &field) : reflection.MutableMessage(&message, &field)));
  }

  const Descriptor& type_;
  std::vector<Step> path_;
  std::string key_;
  int depth_ = 0;
  int64_t elements_ = 0;
};

}  // namespace

absl::Status ReadJson(std::string_view json, google::protobuf::Message& message, MemoryMeter& meter) {
  return Reader(json, *message.GetDescriptor(), meter).Read(message);
}

}  // namespace longshort::server
