#include "server/handlers/archive_format.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/byte_order.h"
#include "base/status_macros.h"
#include "server/handlers/session_archive.pb.h"

namespace longshort::server {
namespace {

constexpr std::string_view kMagic = "LSsess01";
constexpr size_t kFixedBytes = kMagic.size() + sizeof(uint64_t);
// A protobuf varint below 2^31 takes at most five bytes. Names and protobuf's overhead take far less than 4 KiB.
constexpr int64_t kMaxTokenBytes = 5;
constexpr int64_t kMaxNameBytes = 4096;
// The limit of protobuf's parser.
constexpr int64_t kMaxDescriptionBytes = (int64_t{1} << 31) - 1;

archive::SessionDescription Describe(const ExportedSession& session) {
  archive::SessionDescription description;
  description.set_client(session.origin.client);
  description.set_fingerprint(session.origin.fingerprint);
  description.set_precision(session.origin.precision);
  description.mutable_tokens()->Add(session.archive.tokens.begin(), session.archive.tokens.end());
  description.set_cache_layout(session.archive.cache_layout);
  if (session.archive.cached.has_value()) {
    description.mutable_cached()->set_begin(session.archive.cached->begin);
    description.mutable_cached()->set_position(session.archive.cached->position);
  }
  return description;
}

}  // namespace

int64_t MaxArchiveBytes(const core::SessionSize& size) {
  return static_cast<int64_t>(kFixedBytes) + kMaxNameBytes + kMaxTokenBytes * size.tokens + size.cache_bytes;
}

ArchiveWriter::ArchiveWriter(ExportedSession session) {
  const std::string description = Describe(session).SerializeAsString();
  head_.assign(kFixedBytes, '\0');
  head_.replace(0, kMagic.size(), kMagic);
  WriteNumber(description.size(), ByteOrder::kLittleEndian, sizeof(uint64_t), &head_[kMagic.size()]);
  head_ += description;
  if (session.archive.cached.has_value()) contents_ = std::move(session.archive.cached->contents);
}

std::string ArchiveWriter::Next(size_t max) {
  std::string next;
  for (const std::string* part : {&head_, &contents_}) {
    const size_t begin = part == &head_ ? 0 : head_.size();
    if (given_ < begin || given_ >= begin + part->size()) continue;
    const size_t count = std::min(max - next.size(), begin + part->size() - given_);
    next.append(*part, given_ - begin, count);
    given_ += count;
  }
  return next;
}

int64_t ArchiveReader::HeadBytes() const {
  if (head_.size() < kFixedBytes) return static_cast<int64_t>(kFixedBytes);
  const uint64_t description =
      ReadNumber(std::string_view(head_).substr(kMagic.size(), sizeof(uint64_t)), ByteOrder::kLittleEndian);
  const auto max = static_cast<uint64_t>(kMaxDescriptionBytes);
  return static_cast<int64_t>(kFixedBytes + std::min(description, max + 1));
}

absl::Status ArchiveReader::Append(std::string_view bytes) {
  if (static_cast<int64_t>(bytes.size()) > data_bytes_ - received_bytes()) {
    return absl::DataLossError(absl::StrCat("the session has more than the ", data_bytes_, " bytes in its header"));
  }
  while (!bytes.empty() && static_cast<int64_t>(head_.size()) < HeadBytes()) {
    const std::string_view next = bytes.substr(0, HeadBytes() - static_cast<int64_t>(head_.size()));
    head_ += next;
    bytes.remove_prefix(next.size());
    if (head_.size() != kFixedBytes) continue;
    if (!head_.starts_with(kMagic)) return absl::DataLossError("the data is not a session's archive");
    if (HeadBytes() > std::min(data_bytes_, kMaxDescriptionBytes)) {
      return absl::DataLossError("the session's description is longer than the session's data");
    }
    contents_.reserve(data_bytes_ - HeadBytes());
  }
  contents_ += bytes;
  return absl::OkStatus();
}

absl::StatusOr<ExportedSession> ArchiveReader::Finish() {
  if (received_bytes() != data_bytes_ || static_cast<int64_t>(head_.size()) < HeadBytes()) {
    return absl::DataLossError(
        absl::StrCat("the session is cut short: it has ", received_bytes(), " of ", data_bytes_, " bytes"));
  }
  archive::SessionDescription description;
  if (!description.ParseFromArray(head_.data() + kFixedBytes, static_cast<int>(head_.size() - kFixedBytes))) {
    return absl::DataLossError("the session's description cannot be read");
  }
  ExportedSession session;
  session.origin.client = std::move(*description.mutable_client());
  session.origin.fingerprint = std::move(*description.mutable_fingerprint());
  session.origin.precision = std::move(*description.mutable_precision());
  session.archive.tokens.assign(description.tokens().begin(), description.tokens().end());
  session.archive.cache_layout = std::move(*description.mutable_cache_layout());
  if (description.has_cached()) {
    session.archive.cached = {.begin = description.cached().begin(),
                              .position = description.cached().position(),
                              .contents = std::move(contents_)};
  } else if (!contents_.empty()) {
    return absl::DataLossError(absl::StrCat("the session has ", contents_.size(), " bytes after its end"));
  }
  return session;
}

}  // namespace longshort::server
