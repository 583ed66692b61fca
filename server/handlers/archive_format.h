// The archive of an exported session: writes a session as bytes and reads it back.
//
//   8 bytes    "LSsess01": magic number and format version
//   8 bytes    number of bytes of the description, little-endian
//   ...        the description (session_archive.proto): owner, tokens, position of the cached part
//   the rest   the session's part of the cache (core/cache/cache_grid.h)
//
// The description comes before the cache, and both sides process the data piece by piece, so that neither holds the
// cache twice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/session/session.h"

namespace longshort::server {

// Properties that must match on the server that imports the session. The fingerprint covers M and L.
struct SessionOrigin {
  std::string client;
  std::string fingerprint;
  std::string precision;
};

struct ExportedSession {
  SessionOrigin origin;
  core::SessionArchive archive;
};

// Upper bound of the archive's bytes for a session of this size.
int64_t MaxArchiveBytes(const core::SessionSize& size);

class ArchiveWriter final {
 public:
  explicit ArchiveWriter(ExportedSession session);

  // Total bytes of the archive.
  int64_t bytes() const { return static_cast<int64_t>(head_.size() + contents_.size()); }
  // The next bytes: `max` of them, or the rest. Empty at the end.
  std::string Next(size_t max);

 private:
  std::string head_;  // everything before the cache
  std::string contents_;
  size_t given_ = 0;
};

class ArchiveReader final {
 public:
  // For an archive of `data_bytes` bytes. The reader never allocates more.
  explicit ArchiveReader(int64_t data_bytes) : data_bytes_(data_bytes) {}

  // Appends the next bytes. Errors: DATA_LOSS if they are not of a session's archive, or exceed `data_bytes`.
  absl::Status Append(std::string_view bytes);

  int64_t received_bytes() const { return static_cast<int64_t>(head_.size() + contents_.size()); }

  // Returns the session in the archive. The engine must check that a model can use it.
  // REQUIRES: called once, last. Errors: DATA_LOSS if bytes are missing or invalid.
  absl::StatusOr<ExportedSession> Finish();

 private:
  // Bytes before the cache; until the first two fields are read, the bytes of these.
  int64_t HeadBytes() const;

  const int64_t data_bytes_;
  std::string head_;
  std::string contents_;
};

}  // namespace longshort::server
