#include "clients/cpp/json_lines.h"

#include <string>

#include "google/protobuf/util/json_util.h"

namespace longshort {

void WriteJsonLine(const google::protobuf::Message& message, std::ostream& output) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string json;
  // Fails only for messages with google.protobuf.Any, which longshort.v1 has none of.
  if (google::protobuf::util::MessageToJsonString(message, &json, options).ok()) output << json << "\n" << std::flush;
}

}  // namespace longshort
