// Parses any bytes as the data of an exported session. They are rejected, or the session is the same after it is
// written and read again.
//
// The first byte of the input is the size of the pieces of the rest.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "server/handlers/archive_format.h"
#include "tests/fuzz/require.h"

namespace longshort {
namespace {

absl::StatusOr<server::ExportedSession> Read(std::string_view data, size_t piece) {
  server::ArchiveReader reader(static_cast<int64_t>(data.size()));
  for (size_t i = 0; i < data.size(); i += piece) {
    const absl::Status status = reader.Append(data.substr(i, piece));
    if (!status.ok()) return status;
  }
  return reader.Finish();
}

bool IsSame(const server::ExportedSession& a, const server::ExportedSession& b) {
  if (a.archive.cached.has_value() != b.archive.cached.has_value()) return false;
  if (a.archive.cached.has_value() &&
      (a.archive.cached->begin != b.archive.cached->begin || a.archive.cached->position != b.archive.cached->position ||
       a.archive.cached->contents != b.archive.cached->contents)) {
    return false;
  }
  return a.origin.client == b.origin.client && a.origin.fingerprint == b.origin.fingerprint &&
         a.origin.precision == b.origin.precision && a.archive.tokens == b.archive.tokens &&
         a.archive.cache_layout == b.archive.cache_layout;
}

}  // namespace
}  // namespace longshort

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace longshort;
  if (size == 0) return 0;
  const size_t piece = 1 + data[0];
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto session = Read(bytes, piece);
  if (!session.ok()) {
    Require(session.status().code() == absl::StatusCode::kDataLoss, "what is no session is lost data");
    return 0;
  }
  server::ArchiveWriter writer(*session);
  const int64_t written = writer.bytes();
  std::string again;
  for (std::string next = writer.Next(piece); !next.empty(); next = writer.Next(piece)) again += next;
  Require(static_cast<int64_t>(again.size()) == written, "the data have the announced size");
  const auto same = Read(again, bytes.size() + 1);
  Require(same.ok() && IsSame(*session, *same), "a session comes back");
  return 0;
}
