// The data of an exported session: a session as bytes, and back.
//
//   8 bytes    "LSsess01": what this is, and in which form
//   8 bytes    number of bytes of the description, little-endian
//   ...        the description (session_archive.proto): whose it is, its tokens, what of it is in the cache
//   the rest   what the cache has of it (core/cache/parked_pages.h)
//
// The description stands before the cache, and both sides take the data piece by piece, so that nobody holds the cache
// twice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/session/session.h"

namespace longshort::server {

// What must be the same where a session goes on. The fingerprint covers M and L.
struct SessionOrigin {
  std::string client;
  std::string fingerprint;
  std::string precision;
};

struct ExportedSession {
  SessionOrigin origin;
  core::SessionArchive archive;
};

// Bytes of the data of a session of this size, at the most.
int64_t MaxArchiveBytes(const core::SessionSize& size);

class ArchiveWriter final {
 public:
  explicit ArchiveWriter(ExportedSession session);

  // Of all the data.
  int64_t bytes() const { return static_cast<int64_t>(head_.size() + contents_.size()); }
  // The next bytes: `most` of them, or what is left. Empty at the end.
  std::string Next(size_t most);

 private:
  std::string head_;  // all before the cache
  std::string contents_;
  size_t given_ = 0;
};

class ArchiveReader final {
 public:
  // Of data that should have so many bytes: memory for more is never taken.
  explicit ArchiveReader(int64_t data_bytes) : data_bytes_(data_bytes) {}

  // The next bytes. Errors: DATA_LOSS if they are no session's, or more than there should be.
  absl::Status Append(std::string_view bytes);

  int64_t received_bytes() const { return static_cast<int64_t>(head_.size() + contents_.size()); }

  // The session, as it stands in the data: whether a model can have it is for the engine to say.
  // REQUIRES: called once, last. Errors: DATA_LOSS if bytes are missing, or do not say what they should.
  absl::StatusOr<ExportedSession> Finish();

 private:
  // Bytes before the cache; those of the first two fields as long as these have not come.
  int64_t HeadBytes() const;

  const int64_t data_bytes_;
  std::string head_;
  std::string contents_;
};

}  // namespace longshort::server
