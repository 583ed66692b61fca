#include "clients/cpp/npy_file.h"

#include <bit>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace longshort::client {

static_assert(std::endian::native == std::endian::little);

absl::StatusOr<NpyFile> NpyFile::Create(const std::string& name, int64_t width) {
  NpyFile created(name, width);
  if (!created.file_) return absl::NotFoundError(absl::StrCat(name, ": ", std::strerror(errno)));
  created.file_ << created.Header();
  return created;
}

void NpyFile::Add(absl::Span<const float> row) {
  file_.write(reinterpret_cast<const char*>(row.data()), static_cast<std::streamsize>(row.size() * sizeof(float)));
  ++rows_;
}

void NpyFile::AddNothing() {
  Add(std::vector<float>(static_cast<size_t>(width_), std::numeric_limits<float>::quiet_NaN()));
}

absl::Status NpyFile::Finish() {
  file_.seekp(0);
  file_ << Header();
  file_.close();
  if (file_) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(name_, " cannot be written: ", std::strerror(errno)));
}

// The format's magic string, its version, the length of the rest, and a Python dictionary that ends with a newline. The
// length is a multiple of 64, and the same for any number of rows.
std::string NpyFile::Header() const {
  constexpr size_t kBytes = 128, kBefore = 10;
  std::string text = absl::StrCat("{'descr': '<f4', 'fortran_order': False, 'shape': (", rows_, ", ", width_, "), }");
  text.resize(kBytes - kBefore - 1, ' ');
  text += '\n';
  const auto size = static_cast<uint16_t>(text.size());
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(size & 0xFF);
  header += static_cast<char>(size >> 8);
  return header + text;
}

}  // namespace longshort::client
