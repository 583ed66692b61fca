// The safetensors format: named tensors in one file, described by a JSON header.
//
//   8 bytes     header length n, little-endian
//   n bytes     JSON, as below
//   the rest    the tensors' bytes, row-major, little-endian; offsets count from here
//
//   {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, ..., "__metadata__": {...}}
//
// The reader checks untrusted files: each byte of the data must belong to exactly one tensor, and the length of each
// tensor must match its shape and type. Open reads the header. A tensor's values are read on demand.
//
// Immutable after Open, hence thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/files.h"

namespace longshort::models {

enum class DataType {
  kBool,
  kF4,
  kF6E2M3,
  kF6E3M2,
  kU8,
  kI8,
  kF8E4M3,
  kF8E5M2,
  kF8E8M0,
  kF8E4M3Fnuz,
  kF8E5M2Fnuz,
  kU16,
  kI16,
  kF16,
  kBF16,
  kU32,
  kI32,
  kF32,
  kU64,
  kI64,
  kF64,
  kC64,
};

// The format's name of a type: "F32".
std::string_view DataTypeName(DataType type);
// Bits of one element.
int64_t DataTypeBits(DataType type);
// Whether it is a type of integers or booleans: a module's counters, indices and masks, never its weights.
bool IsBufferType(DataType type);

// Number of elements of a tensor of this shape (1 for a scalar), or nullopt if a dimension is negative or the product
// exceeds int64.
std::optional<int64_t> ElementCount(absl::Span<const int64_t> shape);
// Bytes of such a tensor, or nullopt if they exceed int64 or end within a byte.
std::optional<int64_t> TensorBytes(absl::Span<const int64_t> shape, DataType type);

// The type, shape and position of a tensor in the file.
struct StoredTensor {
  DataType type = DataType::kF32;
  std::vector<int64_t> shape;
  int64_t offset = 0;  // bytes from the beginning of the file; not aligned
  int64_t bytes = 0;
};

class SafetensorsFile final {
 public:
  // Maximum length of the header. It is the format's limit.
  static constexpr uint64_t kHeaderLimitBytes = 100'000'000;

  // Opens the file and checks all of its header.
  // Errors: those of StoredBytes, which calls `stop_requested`; INVALID_ARGUMENT naming the file, the tensor, the value
  // and the violated limit.
  static absl::StatusOr<SafetensorsFile> Open(const std::string& path, std::function<bool()> stop_requested = {});
  // Parses a file in memory, which must outlive the result. `name` is the file's name in errors.
  static absl::StatusOr<SafetensorsFile> Parse(absl::Span<const std::byte> bytes, std::string name);

  // The tensor named `name`, or nullptr.
  const StoredTensor* Find(std::string_view name) const;
  const std::map<std::string, StoredTensor, std::less<>>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  // The number of elements of all tensors.
  int64_t Elements() const;
  // The path, or the name given to Parse.
  const std::string& name() const { return name_; }
  // The whole file.
  const StoredBytes& bytes() const { return bytes_; }

 private:
  SafetensorsFile(StoredBytes bytes, std::string name) : name_(std::move(name)), bytes_(std::move(bytes)) {}

  static absl::StatusOr<SafetensorsFile> Read(StoredBytes bytes, std::string name);
  absl::Status ReadHeader();

  std::string name_;
  StoredBytes bytes_;
  std::map<std::string, StoredTensor, std::less<>> tensors_;
  std::map<std::string, std::string> metadata_;
};

// A tensor to write. `data` is only read during the call.
struct NamedTensor {
  std::string name;
  DataType type = DataType::kF32;
  std::vector<int64_t> shape;
  absl::Span<const std::byte> data;
};

// Writes the file with WriteFileAtomically. Tensors are in the order of falling element size, so that each is aligned.
// The same input gives the same bytes.
// Errors: INVALID_ARGUMENT if a name is repeated or not UTF-8, or if the length of data does not match shape and type;
// those of WriteFileAtomically.
absl::Status WriteSafetensors(const std::string& path, absl::Span<const NamedTensor> tensors,
                              const std::map<std::string, std::string>& metadata = {});

}  // namespace longshort::models
