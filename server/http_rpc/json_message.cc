#include "server/http_rpc/json_message.h"

#include <google/protobuf/util/json_util.h>

#include "absl/strings/str_cat.h"
#include "base/utf8.h"

namespace longshort::server {

absl::Status ReadJson(std::string_view json, google::protobuf::Message& message) {
  const google::protobuf::util::Status read = google::protobuf::util::JsonStringToMessage(
      google::protobuf::StringPiece(json.data(), json.size()), &message, google::protobuf::util::JsonParseOptions());
  if (read.ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the body is not a ", message.GetDescriptor()->full_name(),
                   " in JSON: ", std::string(read.message().data(), read.message().size())));
}

absl::StatusOr<std::string> WriteJson(const google::protobuf::Message& message) {
  std::string json;
  const google::protobuf::util::Status written =
      google::protobuf::util::MessageToJsonString(message, &json, google::protobuf::util::JsonPrintOptions());
  if (written.ok()) return json;
  return absl::InternalError(absl::StrCat("the answer cannot be written as JSON: ",
                                          std::string(written.message().data(), written.message().size())));
}

}  // namespace longshort::server
