#include "server/rpc/request_message.h"

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/inflate.h"
#include "base/status_macros.h"
#include "core/schedule/refusal.h"
#include "server/rpc/message_size.h"

namespace longshort::server {
namespace {

using MessageType = google::protobuf::Descriptor;
using google::protobuf::io::ZeroCopyInputStream;

constexpr int kPieceBytes = 64 << 10;

class Reader final : public grpc::ProtoBufferReader {
 public:
  explicit Reader(grpc::ByteBuffer& bytes) : ProtoBufferReader(&bytes) {}

  // gRPC does not decompress messages for this server, and keeps the algorithm beside the bytes.
  bool is_compressed() { return status().ok() && reader()->buffer_in->data.raw.compression != GRPC_COMPRESS_NONE; }
};

// Reads the content of a compressed message.
class Decompressed final : public google::protobuf::io::CopyingInputStream {
 public:
  Decompressed(grpc::ProtoBufferReader& packed, int64_t max_bytes)
      : inflater_([&packed] { return NextPiece(packed); }, max_bytes) {}

  int Read(void* buffer, int size) override {
    const absl::StatusOr<size_t> read = inflater_.Read(static_cast<char*>(buffer), static_cast<size_t>(size));
    if (read.ok()) return static_cast<int>(*read);
    status_ = read.status();
    return -1;
  }

  const absl::Status& status() const { return status_; }

 private:
  static std::string_view NextPiece(grpc::ProtoBufferReader& packed) {
    const void* data = nullptr;
    int size = 0;
    while (packed.Next(&data, &size)) {
      if (size > 0) return {static_cast<const char*>(data), static_cast<size_t>(size)};
    }
    return {};
  }

  Inflater inflater_;
  absl::Status status_;
};

// Calls `parse` with a stream of the message's content; it returns whether the content is well-formed.
template <typename Parse>
absl::Status WithContent(grpc::ByteBuffer& bytes, const MessageType& type, int64_t max_bytes, const Parse& parse) {
  const absl::Status malformed = absl::InvalidArgumentError(
      absl::StrCat("the request is not a ", type.full_name(), ": malformed, or a string field is not UTF-8"));
  Reader reader(bytes);
  if (!reader.is_compressed()) {
    return reader.status().ok() && parse(reader) && reader.status().ok() ? absl::OkStatus() : malformed;
  }
  Decompressed content(reader, max_bytes);
  google::protobuf::io::CopyingInputStreamAdaptor stream(&content, kPieceBytes);
  const bool parsed = parse(stream);
  if (absl::IsResourceExhausted(content.status())) {
    // The words of gRPC's own error for a plain message.
    return absl::ResourceExhaustedError(
        absl::StrCat("Received message larger than max: it has more than ", max_bytes, " bytes uncompressed"));
  }
  if (!content.status().ok()) {
    return absl::Status(content.status().code(),
                        absl::StrCat("the request cannot be decompressed: ", content.status().message()));
  }
  return parsed ? absl::OkStatus() : malformed;
}

absl::StatusOr<Budget::Share> Charge(grpc::ByteBuffer& bytes, const MessageType& type, int64_t max_bytes,
                                     const std::shared_ptr<Budget>& budget) {
  if (bytes.Length() <= kSmallMessage && !IsCompressed(bytes)) return Budget::Share();
  MessageSize size;
  LS_RETURN_IF_ERROR(WithContent(bytes, type, max_bytes, [&](ZeroCopyInputStream& content) {
    size = MeasureMessage(content, type, kMaxElements);
    return true;
  }));
  if (size.elements > kMaxElements) {
    return absl::InvalidArgumentError(
        absl::StrCat("the request has more than ", kMaxElements, " messages, strings, map entries and unknown fields"));
  }
  absl::StatusOr<Budget::Share> share = Budget::Take(budget, size.InMemory());
  if (share.ok()) return share;
  absl::Status status = share.status();
  core::SetRefusal(status, {.retry_after = core::kMinRetryDelay});
  return status;
}

}  // namespace

bool IsCompressed(grpc::ByteBuffer& bytes) { return Reader(bytes).is_compressed(); }

absl::StatusOr<Budget::Share> ParseMessage(grpc::ByteBuffer& bytes, google::protobuf::Message& message,
                                           int64_t max_bytes, const std::shared_ptr<Budget>& budget) {
  const MessageType& type = *message.GetDescriptor();
  absl::StatusOr<Budget::Share> share = Charge(bytes, type, max_bytes, budget);
  absl::Status status = share.status();
  if (status.ok()) {
    status = WithContent(bytes, type, max_bytes,
                         [&](ZeroCopyInputStream& content) { return message.ParseFromZeroCopyStream(&content); });
  }
  bytes.Clear();
  if (!status.ok()) return status;
  return share;
}

}  // namespace longshort::server
