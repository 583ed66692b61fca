#include "server/fronts/json/connect_codec.h"

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/byte_order.h"
#include "base/status_macros.h"
#include "base/strict_json.h"
#include "core/schedule/refusal.h"
#include "nlohmann/json.hpp"
#include "server/call/call_metadata.h"
#include "server/call/message_size.h"
#include "server/calls/call_names.h"
#include "server/fronts/json/json_message.h"
#include "server/transports/http/http_call.h"
#include "server/transports/http/http_message.h"

namespace longshort::server {
namespace {

enum class Encoding { kJson, kProto };

// An envelope: a byte of flags, the length as four bytes (big-endian), the message.
constexpr size_t kPrefixBytes = 5;
constexpr unsigned char kCompressed = 1, kEndOfStream = 2;

std::string Envelop(unsigned char flags, std::string_view message) {
  std::string envelope(kPrefixBytes, static_cast<char>(flags));
  WriteNumber(message.size(), ByteOrder::kBigEndian, kPrefixBytes - 1, &envelope[1]);
  return envelope.append(message);
}

nlohmann::ordered_json ErrorJson(const absl::Status& status) {
  nlohmann::ordered_json error = {{"code", std::string(CodeName(status.code()))},
                                  {"message", std::string(status.message())}};
  if (const std::optional<core::Refusal> refusal = core::GetRefusal(status); refusal.has_value()) {
    std::string value = absl::Base64Escape(SerializeRetryInfo(refusal->retry_after));
    while (absl::EndsWith(value, "=")) value.pop_back();
    error["details"] = {{{"type", "google.rpc.RetryInfo"}, {"value", std::move(value)}}};
  }
  return error;
}

class ConnectCodec final : public HttpCodec {
 public:
  ConnectCodec(Encoding encoding, RpcKind kind, const HttpRequest& head, int64_t max_message_bytes)
      : encoding_(encoding),
        kind_(kind),
        max_message_bytes_(max_message_bytes),
        coding_(head.Find("connect-content-encoding").value_or("")),
        answer_coding_(kind == RpcKind::kUnary ? "" : AcceptedCoding(head, "connect-accept-encoding")) {
    if (!IsCoded(coding_)) coding_.clear();
  }

  std::string CodingOf(const HttpRequest& request) const override {
    if (request.method == "GET") return "";
    return kind_ == RpcKind::kUnary ? HttpCodec::CodingOf(request) : coding_;
  }
  absl::StatusOr<PackedMessage> TakeOnly(HttpRequest& request) override {
    if (request.method == "GET") return TakeFromQuery(request);
    if (kind_ == RpcKind::kUnary) return HttpCodec::TakeOnly(request);
    const bool is_empty = request.body.empty();
    LS_ASSIGN_OR_RETURN(std::optional<PackedMessage> only, TakeNext(request.body));
    if (only.has_value() && request.body.empty()) return *std::move(only);
    // As in gRPC, the number of messages is wrong.
    const auto code =
        is_empty || only.has_value() ? absl::StatusCode::kUnimplemented : absl::StatusCode::kInvalidArgument;
    return absl::Status(code,
                        "the body must be one message in an envelope: a byte of flags, four bytes of length, and the "
                        "message");
  }

  absl::StatusOr<std::optional<PackedMessage>> TakeNext(std::string& received) override {
    if (received.size() < kPrefixBytes) return std::nullopt;
    const auto flags = static_cast<unsigned char>(received[0]);
    const size_t length = ReadNumber(std::string_view(received).substr(1, kPrefixBytes - 1), ByteOrder::kBigEndian);
    if ((flags & ~kCompressed) != 0) {
      return absl::InvalidArgumentError(absl::StrCat("an envelope has the flags ", flags, "; 0 and 1 are allowed"));
    }
    if (length > MaxBytes()) return BodyTooLarge(MaxBytes());
    const bool is_compressed = (flags & kCompressed) != 0;
    if (is_compressed && coding_.empty()) {
      return absl::InvalidArgumentError("an envelope is compressed, but Connect-Content-Encoding is not set");
    }
    if (received.size() - kPrefixBytes < length) return std::nullopt;
    PackedMessage message{received.substr(kPrefixBytes, length), is_compressed ? coding_ : ""};
    received.erase(0, kPrefixBytes + length);
    return message;
  }

  absl::Status ReadRequest(HttpRequest& request, google::protobuf::Message& message, MemoryMeter& meter) override {
    if (encoding_ == Encoding::kJson) return ReadJson(request.body, message, meter);
    if (request.body.size() > MaxBytes()) return BodyTooLarge(MaxBytes());
    google::protobuf::io::ArrayInputStream stream(request.body.data(), static_cast<int>(request.body.size()));
    const MessageSize size = MeasureMessage(stream, *message.GetDescriptor(), kMaxElements);
    LS_RETURN_IF_ERROR(CheckElements(size));
    LS_RETURN_IF_ERROR(meter.Add(size.memory));
    if (message.ParseFromString(request.body)) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("the request is not a ", message.GetDescriptor()->full_name(),
                                                   ": malformed, or a string field is not UTF-8"));
  }

  absl::StatusOr<HttpResponse> WriteAnswer(const google::protobuf::Message& answer) override {
    if (kind_ != RpcKind::kUnary) {
      LS_ASSIGN_OR_RETURN(std::string stream, WriteMessage(answer));
      return StreamOf(absl::StrCat(stream, WriteEnd(absl::OkStatus())));
    }
    LS_ASSIGN_OR_RETURN(std::string body, Write(answer));
    return HttpResponse{.body = std::move(body), .content_type = ContentType("application/")};
  }

  HttpResponse WriteError(const absl::Status& status) override {
    return kind_ == RpcKind::kUnary ? ConnectError(status) : StreamOf(WriteEnd(status));
  }

  bool errors_in_stream() const override { return true; }
  std::string stream_content_type() const override { return ContentType("application/connect+"); }
  HttpFields stream_fields() const override {
    if (answer_coding_.empty()) return {};
    return {{"Connect-Content-Encoding", std::string(answer_coding_)}};
  }
  absl::StatusOr<std::string> WriteMessage(const google::protobuf::Message& answer) override {
    LS_ASSIGN_OR_RETURN(const std::string message, Write(answer));
    const std::optional<std::string> packed = EncodeContent(answer_coding_, message);
    return packed.has_value() ? Envelop(kCompressed, *packed) : Envelop(0, message);
  }
  std::string WriteEnd(const absl::Status& status) override {
    nlohmann::ordered_json end = nlohmann::ordered_json::object();
    if (!status.ok()) end["error"] = ErrorJson(status);
    return Envelop(kEndOfStream, DumpJson(end));
  }

 private:
  // Of a message as it arrives.
  size_t MaxBytes() const {
    return encoding_ == Encoding::kJson ? MaxJsonBodyBytes(max_message_bytes_)
                                        : static_cast<size_t>(max_message_bytes_);
  }

  std::string ContentType(const char* prefix) const {
    return absl::StrCat(prefix, encoding_ == Encoding::kJson ? "json" : "proto");
  }

  HttpResponse StreamOf(std::string envelopes) const {
    return {.body = std::move(envelopes), .content_type = stream_content_type(), .fields = stream_fields()};
  }

  absl::StatusOr<PackedMessage> TakeFromQuery(const HttpRequest& request) const {
    std::optional<std::string> text = QueryParameter(request.query, "message");
    if (!text.has_value()) return absl::InvalidArgumentError("the query has no parameter `message`, or a wrong one");
    PackedMessage message{*std::move(text), ""};
    if (QueryParameter(request.query, "base64") != "1") return message;
    std::string bytes;
    if (!absl::WebSafeBase64Unescape(message.bytes, &bytes)) {
      return absl::InvalidArgumentError("the query's `message` is not URL-safe base64");
    }
    message.bytes = std::move(bytes);
    return message;
  }

  absl::StatusOr<std::string> Write(const google::protobuf::Message& message) const {
    if (encoding_ == Encoding::kJson) return WriteJson(message);
    return message.SerializeAsString();
  }

  const Encoding encoding_;
  const RpcKind kind_;
  const int64_t max_message_bytes_;
  std::string coding_;                    // of the request's envelopes
  const std::string_view answer_coding_;  // of the answer's
};

absl::StatusOr<Encoding> EncodingOf(const Rpc& rpc, const HttpRequest& head) {
  if (head.method == "GET") {
    if (const std::string coding = QueryParameter(head.query, "compression").value_or(""); IsCoded(coding)) {
      return absl::UnimplementedError(
          absl::StrCat("the query's `compression` is ", Quoted(coding), "; GET takes no compression, POST does"));
    }
    const std::string encoding = QueryParameter(head.query, "encoding").value_or("");
    if (encoding == "json") return Encoding::kJson;
    if (encoding == "proto") return Encoding::kProto;
    return HttpError(415, "the query's `encoding` must be json or proto");
  }
  const bool is_unary = rpc.kind == RpcKind::kUnary;
  const std::string prefix = is_unary ? "application/" : "application/connect+";
  const std::string type = head.MediaType();
  if (type == prefix + "json") return Encoding::kJson;
  if (type == prefix + "proto") return Encoding::kProto;
  return HttpError(415, absl::StrCat("the content type is ", type.empty() ? "not set" : Quoted(type), "; ",
                                     rpc.names.method(), " takes ", prefix, "json and ", prefix, "proto"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<HttpCodec>> MakeConnectCodec(const Rpc& rpc, const HttpRequest& head,
                                                            int64_t max_message_bytes) {
  if (rpc.kind == RpcKind::kBidirectional) {
    return absl::UnimplementedError(
        absl::StrCat(rpc.names.method(),
                     " streams in both directions, which HTTP/1.1 cannot; call it by gRPC, on the port of --listen"));
  }
  LS_ASSIGN_OR_RETURN(const Encoding encoding, EncodingOf(rpc, head));
  return std::make_unique<ConnectCodec>(encoding, rpc.kind, head, max_message_bytes);
}

HttpResponse ConnectError(const absl::Status& status) {
  return {.status = HttpStatusOf(status), .body = DumpJson(ErrorJson(status)), .content_type = kJsonType};
}

HttpFront ConnectFront(const CallEnvironment& environment, const std::vector<Rpc>& rpcs) {
  std::unordered_map<std::string, const Rpc*> paths;
  for (const Rpc& rpc : rpcs) paths.emplace(absl::StrCat("/", rpc.names.method()), &rpc);
  return [&environment, paths = std::move(paths)](const HttpRequest& head) -> std::optional<HttpPlan> {
    const auto found = paths.find(head.path);
    if (found == paths.end()) return std::nullopt;
    const Rpc& rpc = *found->second;
    HttpPlan plan;
    plan.methods = {"POST"};
    if (rpc.side_effect_free) plan.methods.emplace_back("GET");
    plan.write_error = ConnectError;
    const int64_t max_message_bytes = environment.limits.message_bytes;
    const auto make_codec = [&rpc, max_message_bytes](const HttpRequest& request) {
      return MakeConnectCodec(rpc, request, max_message_bytes);
    };
    ServeCalls(environment, rpc, MaxJsonBodyBytes(max_message_bytes), make_codec, plan);
    return plan;
  };
}

}  // namespace longshort::server
