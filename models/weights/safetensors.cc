#include "models/weights/safetensors.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/byte_order.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "base/strict_json.h"
#include "nlohmann/json.hpp"

namespace longshort::models {
namespace {

struct DataTypeRow {
  DataType type;
  std::string_view name;
  int64_t bits;
};

// The types of safetensors 0.8.
constexpr std::array<DataTypeRow, 22> kDataTypes = {{
    {DataType::kBool, "BOOL", 8},
    {DataType::kF4, "F4", 4},
    {DataType::kF6E2M3, "F6_E2M3", 6},
    {DataType::kF6E3M2, "F6_E3M2", 6},
    {DataType::kU8, "U8", 8},
    {DataType::kI8, "I8", 8},
    {DataType::kF8E4M3, "F8_E4M3", 8},
    {DataType::kF8E5M2, "F8_E5M2", 8},
    {DataType::kF8E8M0, "F8_E8M0", 8},
    {DataType::kF8E4M3Fnuz, "F8_E4M3FNUZ", 8},
    {DataType::kF8E5M2Fnuz, "F8_E5M2FNUZ", 8},
    {DataType::kU16, "U16", 16},
    {DataType::kI16, "I16", 16},
    {DataType::kF16, "F16", 16},
    {DataType::kBF16, "BF16", 16},
    {DataType::kU32, "U32", 32},
    {DataType::kI32, "I32", 32},
    {DataType::kF32, "F32", 32},
    {DataType::kU64, "U64", 64},
    {DataType::kI64, "I64", 64},
    {DataType::kF64, "F64", 64},
    {DataType::kC64, "C64", 64},
}};

constexpr size_t kLengthBytes = 8;
constexpr std::string_view kMetadataKey = "__metadata__";

const DataTypeRow& RowOf(DataType type) {
  return *std::find_if(kDataTypes.begin(), kDataTypes.end(),
                       [type](const DataTypeRow& row) { return row.type == type; });
}

// A tensor's header entry, before the check of the layout.
struct Entry {
  std::string name;
  DataType type = DataType::kF32;
  std::vector<int64_t> shape;
  int64_t begin = 0;  // bytes from the start of the data
  int64_t end = 0;
};

// Reads the entry of one tensor. Errors describe the problem without the names of file and tensor.
class EntryReader final {
 public:
  explicit EntryReader(const nlohmann::json& json) : json_(json) {}

  absl::StatusOr<Entry> Read() const {
    if (!json_.is_object()) return Wrong(absl::StrFormat("is a JSON %s, not an object", json_.type_name()));
    for (const auto& [key, value] : json_.items()) {
      if (key != "dtype" && key != "shape" && key != "data_offsets") {
        return Wrong(absl::StrFormat("unknown key %s", QuoteForMessage(key)));
      }
    }
    Entry entry;
    LS_ASSIGN_OR_RETURN(entry.type, ReadType());
    LS_ASSIGN_OR_RETURN(entry.shape, ReadIntegers("shape"));
    LS_ASSIGN_OR_RETURN(const std::vector<int64_t> offsets, ReadIntegers("data_offsets"));
    if (offsets.size() != 2) return Wrong(absl::StrFormat("data_offsets has %d numbers, not 2", offsets.size()));
    entry.begin = offsets[0];
    entry.end = offsets[1];
    LS_RETURN_IF_ERROR(CheckLength(entry));
    return entry;
  }

 private:
  static absl::Status Wrong(const std::string& reason) { return absl::InvalidArgumentError(reason); }

  absl::StatusOr<DataType> ReadType() const {
    const auto found = json_.find("dtype");
    if (found == json_.end()) return Wrong("dtype is missing");
    if (!found->is_string()) return Wrong(absl::StrFormat("dtype is a JSON %s, not a string", found->type_name()));
    const auto& name = found->get_ref<const std::string&>();
    for (const DataTypeRow& row : kDataTypes) {
      if (row.name == name) return row.type;
    }
    return Wrong(absl::StrFormat("dtype %s is unknown", QuoteForMessage(name)));
  }

  absl::StatusOr<std::vector<int64_t>> ReadIntegers(const char* key) const {
    const auto found = json_.find(key);
    if (found == json_.end()) return Wrong(absl::StrFormat("%s is missing", key));
    if (!found->is_array()) return Wrong(absl::StrFormat("%s is a JSON %s, not an array", key, found->type_name()));
    std::vector<int64_t> numbers;
    for (const nlohmann::json& element : *found) {
      if (!element.is_number_unsigned() || element.get<uint64_t>() > std::numeric_limits<int64_t>::max()) {
        return Wrong(
            absl::StrFormat("%s contains %s, not an integer in 0..2^63-1", key, QuoteForMessage(element.dump())));
      }
      numbers.push_back(element.get<int64_t>());
    }
    return numbers;
  }

  // end - begin must match shape and type.
  static absl::Status CheckLength(const Entry& entry) {
    const std::string shape = absl::StrFormat("[%s] of %s", absl::StrJoin(entry.shape, ","), DataTypeName(entry.type));
    const std::optional<int64_t> bytes = TensorBytes(entry.shape, entry.type);
    if (!bytes.has_value()) {
      return Wrong(absl::StrFormat("shape %s is more than 2^63-1 bits, or ends within a byte", QuoteForMessage(shape)));
    }
    if (entry.begin > entry.end) {
      return Wrong(absl::StrFormat("data_offsets [%d,%d] end before they begin", entry.begin, entry.end));
    }
    if (entry.end - entry.begin != *bytes) {
      return Wrong(absl::StrFormat("data_offsets [%d,%d] span %d bytes, but shape %s takes %d", entry.begin, entry.end,
                                   entry.end - entry.begin, QuoteForMessage(shape), *bytes));
    }
    return absl::OkStatus();
  }

  const nlohmann::json& json_;
};

// The tensors must be adjacent, from the first byte of the data to the last.
absl::Status CheckLayout(std::vector<Entry>& entries, int64_t data_bytes) {
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
  int64_t next = 0;
  for (const Entry& entry : entries) {
    const std::string tensor =
        absl::StrFormat("tensor %s: data_offsets [%d,%d] ", QuoteForMessage(entry.name), entry.begin, entry.end);
    if (entry.end > data_bytes) {
      return absl::InvalidArgumentError(
          absl::StrFormat("%send after the data, which has %d bytes", tensor, data_bytes));
    }
    if (entry.begin < next) {
      return absl::InvalidArgumentError(absl::StrFormat("%soverlap the tensor before, which ends at %d", tensor, next));
    }
    if (entry.begin > next) {
      return absl::InvalidArgumentError(absl::StrFormat("%sleave a hole: the tensor before ends at %d", tensor, next));
    }
    next = entry.end;
  }
  if (next != data_bytes) {
    return absl::InvalidArgumentError(absl::StrFormat("%d bytes after the last tensor", data_bytes - next));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::map<std::string, std::string>> ReadMetadata(const nlohmann::json& json) {
  if (!json.is_object()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s is a JSON %s, not an object", kMetadataKey, json.type_name()));
  }
  std::map<std::string, std::string> metadata;
  for (const auto& [key, value] : json.items()) {
    if (!value.is_string()) {
      return absl::InvalidArgumentError(
          absl::StrFormat("%s %s is a JSON %s, not a string", kMetadataKey, QuoteForMessage(key), value.type_name()));
    }
    metadata.emplace(key, value.get<std::string>());
  }
  return metadata;
}

// The header's text. Errors do not name the file, except those of reading it.
absl::StatusOr<std::string> ReadHeaderText(const StoredBytes& bytes) {
  const auto size = static_cast<uint64_t>(bytes.size());
  if (size < kLengthBytes) {
    return absl::InvalidArgumentError(absl::StrFormat("only %d bytes, too short for a header length", size));
  }
  std::string length_bytes(kLengthBytes, '\0');
  LS_RETURN_IF_ERROR(
      bytes.Read(0, absl::MakeSpan(reinterpret_cast<std::byte*>(length_bytes.data()), length_bytes.size())));
  const uint64_t length = ReadNumber(length_bytes, ByteOrder::kLittleEndian);
  if (length > SafetensorsFile::kHeaderLimitBytes) {
    return absl::InvalidArgumentError(
        absl::StrFormat("header length %d is over the limit of %d", length, SafetensorsFile::kHeaderLimitBytes));
  }
  if (length > size - kLengthBytes) {
    return absl::InvalidArgumentError(
        absl::StrFormat("header length %d, but only %d bytes follow", length, size - kLengthBytes));
  }
  std::string header(length, '\0');
  LS_RETURN_IF_ERROR(
      bytes.Read(kLengthBytes, absl::MakeSpan(reinterpret_cast<std::byte*>(header.data()), header.size())));
  if (header.empty() || header.front() != '{') return absl::InvalidArgumentError("the header does not start with '{'");
  return header;
}

absl::Status Prefixed(const std::string& prefix, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrFormat("%s: %s", prefix, status.message()));
}

absl::Status CheckTensor(const NamedTensor& tensor) {
  if (tensor.name == "__metadata__") return absl::InvalidArgumentError("no tensor can be named '__metadata__'");
  if (TensorBytes(tensor.shape, tensor.type) != static_cast<int64_t>(tensor.data.size())) {
    return absl::InvalidArgumentError(absl::StrFormat("tensor %s: %d bytes do not match its shape",
                                                      QuoteForMessage(tensor.name), tensor.data.size()));
  }
  return absl::OkStatus();
}

std::string_view AsText(absl::Span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string LittleEndian(uint64_t value) {
  std::string bytes(8, '\0');
  WriteNumber(value, ByteOrder::kLittleEndian, 8, bytes.data());
  return bytes;
}

}  // namespace

std::string_view DataTypeName(DataType type) { return RowOf(type).name; }

int64_t DataTypeBits(DataType type) { return RowOf(type).bits; }

bool IsBufferType(DataType type) {
  const char first = DataTypeName(type).front();
  return type == DataType::kBool || first == 'I' || first == 'U';
}

std::optional<int64_t> ElementCount(absl::Span<const int64_t> shape) {
  int64_t count = 1;
  bool overflow = false;
  for (const int64_t dimension : shape) {
    if (dimension < 0) return std::nullopt;
    if (dimension == 0) return 0;
    overflow = overflow || __builtin_mul_overflow(count, dimension, &count);
  }
  if (overflow) return std::nullopt;
  return count;
}

std::optional<int64_t> TensorBytes(absl::Span<const int64_t> shape, DataType type) {
  constexpr int64_t kByte = 8;
  const std::optional<int64_t> elements = ElementCount(shape);
  int64_t bits = 0;
  if (!elements || __builtin_mul_overflow(*elements, DataTypeBits(type), &bits) || bits % kByte != 0) {
    return std::nullopt;
  }
  return bits / kByte;
}

absl::StatusOr<SafetensorsFile> SafetensorsFile::Open(const std::string& path, std::function<bool()> stop_requested) {
  LS_ASSIGN_OR_RETURN(StoredBytes bytes, StoredBytes::OpenFile(path, std::move(stop_requested)));
  return Read(std::move(bytes), path);
}

absl::StatusOr<SafetensorsFile> SafetensorsFile::Parse(absl::Span<const std::byte> bytes, std::string name) {
  return Read(StoredBytes::InMemory(bytes), std::move(name));
}

absl::StatusOr<SafetensorsFile> SafetensorsFile::Read(StoredBytes bytes, std::string name) {
  SafetensorsFile file(std::move(bytes), std::move(name));
  if (absl::Status status = file.ReadHeader(); !status.ok()) {
    return absl::IsInvalidArgument(status) ? Prefixed(file.name_, status) : status;
  }
  return file;
}

absl::Status SafetensorsFile::ReadHeader() {
  LS_ASSIGN_OR_RETURN(const std::string header, ReadHeaderText(bytes_));
  LS_ASSIGN_OR_RETURN(const nlohmann::json document, ParseJsonObject(header, "header"));
  const auto data_begin = static_cast<int64_t>(kLengthBytes + header.size());

  std::vector<Entry> entries;
  for (const auto& [name, value] : document.items()) {
    if (name == kMetadataKey) {
      LS_ASSIGN_OR_RETURN(metadata_, ReadMetadata(value));
      continue;
    }
    absl::StatusOr<Entry> entry = EntryReader(value).Read();
    if (!entry.ok()) return Prefixed(absl::StrFormat("tensor %s", QuoteForMessage(name)), entry.status());
    entry->name = name;
    entries.push_back(*std::move(entry));
  }
  LS_RETURN_IF_ERROR(CheckLayout(entries, bytes_.size() - data_begin));
  for (Entry& entry : entries) {
    tensors_.emplace(std::move(entry.name), StoredTensor{.type = entry.type,
                                                         .shape = std::move(entry.shape),
                                                         .offset = data_begin + entry.begin,
                                                         .bytes = entry.end - entry.begin});
  }
  return absl::OkStatus();
}

int64_t SafetensorsFile::Elements() const {
  int64_t elements = 0;
  for (const auto& [name, tensor] : tensors_) elements += ElementCount(tensor.shape).value();
  return elements;
}

const StoredTensor* SafetensorsFile::Find(std::string_view name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

absl::Status WriteSafetensors(const std::string& path, absl::Span<const NamedTensor> tensors,
                              const std::map<std::string, std::string>& metadata) {
  std::vector<const NamedTensor*> order;
  for (const NamedTensor& tensor : tensors) order.push_back(&tensor);
  std::stable_sort(order.begin(), order.end(), [](const NamedTensor* a, const NamedTensor* b) {
    return DataTypeBits(a->type) > DataTypeBits(b->type);
  });

  nlohmann::json header = nlohmann::json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::vector<std::string_view> pieces(2);  // length and header come first
  size_t offset = 0;
  for (const NamedTensor* tensor : order) {
    if (absl::Status status = CheckTensor(*tensor); !status.ok()) return status;
    if (header.contains(tensor->name)) {
      return absl::InvalidArgumentError(absl::StrFormat("tensor %s is given twice", QuoteForMessage(tensor->name)));
    }
    header[tensor->name] = {{"dtype", DataTypeName(tensor->type)},
                            {"shape", tensor->shape},
                            {"data_offsets", {offset, offset + tensor->data.size()}}};
    offset += tensor->data.size();
    pieces.push_back(AsText(tensor->data));
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const nlohmann::json::type_error&) {
    return absl::InvalidArgumentError("a tensor name or a metadata entry is not UTF-8");
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');  // the data starts aligned
  const std::string length = LittleEndian(text.size());
  pieces[0] = length;
  pieces[1] = text;
  return WriteFileAtomically(path, pieces);
}

}  // namespace longshort::models
