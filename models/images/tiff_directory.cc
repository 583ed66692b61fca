#include "models/images/tiff_directory.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"

namespace longshort {
namespace {

constexpr uint64_t kBigTiff = 43, kClassicTiff = 42;
// Directories of real files have some dozens.
constexpr uint64_t kMaxEntries = 4096;

// Bytes of a value of an unsigned type; 0 for all other types.
int UnsignedLength(uint16_t type) {
  switch (type) {
    case 1:  // BYTE
      return 1;
    case 3:  // SHORT
      return 2;
    case 4:  // LONG
      return 4;
    case 16:  // LONG8
      return 8;
    default:
      return 0;
  }
}

}  // namespace

absl::StatusOr<TiffDirectory> TiffDirectory::Read(std::string_view bytes) {
  const std::string_view order = bytes.substr(0, 2);
  if (order != "II" && order != "MM") return absl::InvalidArgumentError("the TIFF has no byte order");
  const ByteReader reader(bytes, order == "II" ? ByteOrder::kLittleEndian : ByteOrder::kBigEndian);
  LS_ASSIGN_OR_RETURN(const uint64_t version, reader.Number(2, 2));
  if (version != kClassicTiff && version != kBigTiff) {
    return absl::InvalidArgumentError(absl::StrFormat("the TIFF has version %d; it must be 42 or 43", version));
  }
  TiffDirectory directory(reader, version == kBigTiff ? 8 : 4);
  LS_RETURN_IF_ERROR(directory.ReadEntries());
  return directory;
}

absl::Status TiffDirectory::ReadEntries() {
  const bool big = offset_length_ == 8;
  const int count_length = big ? 8 : 2;
  const uint64_t entry_length = big ? 20 : 12;
  LS_ASSIGN_OR_RETURN(const uint64_t start, reader_.Number(big ? 8 : 4, offset_length_));
  LS_ASSIGN_OR_RETURN(const uint64_t count, reader_.Number(start, count_length));
  if (count > kMaxEntries) {
    return absl::InvalidArgumentError(
        absl::StrFormat("the TIFF's directory has %d entries; the limit is %d", count, kMaxEntries));
  }
  LS_RETURN_IF_ERROR(reader_.Slice(start + count_length, count * entry_length).status());
  entries_.reserve(count);
  for (uint64_t index = 0; index < count; ++index) {
    LS_ASSIGN_OR_RETURN(const Entry entry, ReadEntry(start + count_length + index * entry_length));
    entries_.push_back(entry);
  }
  const auto by_tag = [](const Entry& a, const Entry& b) { return a.tag < b.tag; };
  const auto same_tag = [](const Entry& a, const Entry& b) { return a.tag == b.tag; };
  std::sort(entries_.begin(), entries_.end(), by_tag);
  const auto twice = std::adjacent_find(entries_.begin(), entries_.end(), same_tag);
  if (twice == entries_.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat("the TIFF is broken: tag %d is there twice", twice->tag));
}

absl::StatusOr<TiffDirectory::Entry> TiffDirectory::ReadEntry(uint64_t at) const {
  LS_ASSIGN_OR_RETURN(const uint64_t tag, reader_.Number(at, 2));
  LS_ASSIGN_OR_RETURN(const uint64_t type, reader_.Number(at + 2, 2));
  LS_ASSIGN_OR_RETURN(const uint64_t count, reader_.Number(at + 4, offset_length_));
  return Entry{static_cast<uint16_t>(tag), static_cast<uint16_t>(type), count, at + 4 + offset_length_};
}

const TiffDirectory::Entry* TiffDirectory::FindEntry(TiffTag tag) const {
  const auto number = static_cast<uint16_t>(tag);
  const auto below = [](const Entry& entry, uint16_t wanted) { return entry.tag < wanted; };
  const auto found = std::lower_bound(entries_.begin(), entries_.end(), number, below);
  return found != entries_.end() && found->tag == number ? &*found : nullptr;
}

uint64_t TiffDirectory::Count(TiffTag tag) const {
  const Entry* entry = FindEntry(tag);
  return entry == nullptr ? 0 : entry->count;
}

absl::StatusOr<TiffDirectory::Place> TiffDirectory::Find(TiffTag tag, uint64_t index) const {
  const Entry* entry = FindEntry(tag);
  const int length = entry == nullptr ? 0 : UnsignedLength(entry->type);
  if (length == 0 || index >= entry->count) {
    return absl::InvalidArgumentError(
        absl::StrFormat("the TIFF is broken: tag %d has no unsigned number at index %d", tag, index));
  }
  const bool inside = entry->count <= static_cast<uint64_t>(offset_length_ / length);
  uint64_t start = entry->value_offset;
  if (!inside) {
    LS_ASSIGN_OR_RETURN(start, reader_.Number(entry->value_offset, offset_length_));
  }
  if (start > reader_.bytes().size() || index > reader_.bytes().size()) {
    return absl::InvalidArgumentError(absl::StrFormat("the image is truncated: tag %d lies behind its end", tag));
  }
  const Place place{start + index * static_cast<uint64_t>(length), length};
  LS_RETURN_IF_ERROR(reader_.Slice(place.offset, static_cast<uint64_t>(length)).status());
  return place;
}

absl::StatusOr<uint64_t> TiffDirectory::Number(TiffTag tag, uint64_t index) const {
  LS_ASSIGN_OR_RETURN(const Place place, Find(tag, index));
  return reader_.Number(place.offset, place.length);
}

absl::StatusOr<uint64_t> TiffDirectory::NumberOr(TiffTag tag, uint64_t otherwise) const {
  if (FindEntry(tag) == nullptr) return otherwise;
  return Number(tag);
}

int OrientationOf(const TiffDirectory& directory) {
  const auto orientation = directory.NumberOr(TiffTag::kOrientation, 1);
  return orientation.ok() && *orientation >= 1 && *orientation <= 8 ? static_cast<int>(*orientation) : 1;
}

}  // namespace longshort
