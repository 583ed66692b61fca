#include "server/call/request_message.h"

#include <grpcpp/impl/codegen/proto_utils.h>

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/inflate.h"
#include "base/status_macros.h"
#include "core/schedule/refusal.h"
#include "server/call/message_size.h"

namespace longshort::server {
namespace {

using MessageType = google::protobuf::Descriptor;

constexpr size_t kPieceBytes = 64 << 10;

class Reader final : public grpc::ProtoBufferReader {
 public:
  explicit Reader(grpc::ByteBuffer& bytes) : ProtoBufferReader(&bytes) {}

  // gRPC does not decompress messages for this server, and keeps the algorithm beside the bytes.
  bool is_compressed() { return status().ok() && reader()->buffer_in->data.raw.compression != GRPC_COMPRESS_NONE; }
};

std::string_view NextPiece(grpc::ProtoBufferReader& bytes) {
  const void* data = nullptr;
  int size = 0;
  while (bytes.Next(&data, &size)) {
    if (size > 0) return {static_cast<const char*>(data), static_cast<size_t>(size)};
  }
  return {};
}

// Replaces the bytes by their content.
absl::Status Decompress(grpc::ByteBuffer& bytes, int64_t max_bytes, Budget::Share& memory) {
  Reader packed(bytes);
  Inflater inflater([&packed] { return NextPiece(packed); }, max_bytes);
  std::vector<grpc::Slice> pieces;
  for (size_t read = kPieceBytes; read == kPieceBytes;) {
    LS_RETURN_IF_ERROR(core::Hold(memory.amount() + static_cast<int64_t>(kPieceBytes), memory));
    grpc::Slice piece(kPieceBytes);
    absl::StatusOr<size_t> got =
        inflater.Read(reinterpret_cast<char*>(const_cast<uint8_t*>(piece.begin())), kPieceBytes);
    if (absl::IsResourceExhausted(got.status())) {
      // The words of gRPC's own error for a plain message.
      return absl::ResourceExhaustedError(
          absl::StrCat("Received message larger than max (", max_bytes, " bytes): ", got.status().message()));
    }
    if (!got.ok()) {
      return absl::Status(got.status().code(),
                          absl::StrCat("the request cannot be decompressed: ", got.status().message()));
    }
    read = *got;
    pieces.push_back(read == kPieceBytes ? std::move(piece) : piece.sub(0, read));
  }
  bytes = grpc::ByteBuffer(pieces.data(), pieces.size());
  return absl::OkStatus();
}

absl::Status Charge(grpc::ByteBuffer& bytes, const MessageType& type, Budget::Share& memory) {
  Reader content(bytes);
  const MessageSize size = MeasureMessage(content, type, kMaxElements);
  LS_RETURN_IF_ERROR(CheckElements(size));
  return core::Hold(memory.amount() + size.memory, memory);
}

}  // namespace

bool IsCompressed(grpc::ByteBuffer& bytes) { return Reader(bytes).is_compressed(); }

absl::Status ParseMessage(grpc::ByteBuffer& bytes, google::protobuf::Message& message, int64_t max_bytes,
                          Budget::Share& memory) {
  if (IsCompressed(bytes)) LS_RETURN_IF_ERROR(Decompress(bytes, max_bytes, memory));
  if (bytes.Length() > kSmallMessage) LS_RETURN_IF_ERROR(Charge(bytes, *message.GetDescriptor(), memory));
  Reader reader(bytes);
  if (reader.status().ok() && message.ParseFromZeroCopyStream(&reader) && reader.status().ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the request is not a ", message.GetDescriptor()->full_name(),
                                                 ": malformed, or a string field is not UTF-8"));
}

}  // namespace longshort::server
