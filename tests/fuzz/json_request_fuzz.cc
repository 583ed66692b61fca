// Reads any text as a message in JSON. It is refused with a short message, or the message can be written and read
// again. The first byte chooses one of protobuf's own messages, which together have fields of all kinds.

#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/wrappers.pb.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/utf8.h"
#include "server/fronts/json/json_message.h"
#include "tests/fuzz/require.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace longshort;
  static const std::array<const google::protobuf::Message*, 4> kTypes = {
      &google::protobuf::Struct::default_instance(), &google::protobuf::FileDescriptorProto::default_instance(),
      &google::protobuf::BytesValue::default_instance(), &google::protobuf::FloatValue::default_instance()};
  if (size == 0) return 0;
  const std::string_view json(reinterpret_cast<const char*>(data) + 1, size - 1);
  const google::protobuf::Message& type = *kTypes[data[0] % kTypes.size()];
  const std::unique_ptr<google::protobuf::Message> message(type.New());
  MemoryMeter meter;
  const absl::Status status = server::ReadJson(json, *message, meter);
  if (!status.ok()) {
    const std::string words(status.message());
    Require(status.code() == absl::StatusCode::kInvalidArgument, "a wrong text is an invalid argument");
    Require(words.size() < 10'000, "a message is short, however long the text");
    Require(IsUtf8(words), "a message is UTF-8");
    for (const char c : words) Require(static_cast<unsigned char>(c) >= ' ', "a message has no control characters");
    return 0;
  }
  Require(IsUtf8(json), "what is read is UTF-8");
  message->DiscardUnknownFields();  // numbers that an enum of proto2 does not have
  const std::string written = server::WriteJson(*message);
  const std::unique_ptr<google::protobuf::Message> again(type.New());
  Require(server::ReadJson(written, *again, meter).ok(), "what was written can be read");
  Require(again->DebugString() == message->DebugString(), "and is the same");
  return 0;
}
