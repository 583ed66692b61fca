#include "models/images/image_header.h"

#include <algorithm>
#include <array>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/byte_order.h"
#include "base/status_macros.h"
#include "models/images/codecs.h"

namespace longshort::models {
namespace {

using namespace std::string_view_literals;

// A format that is not supported, and its signature at an offset.
struct OtherFormat {
  std::string_view name;
  size_t offset;
  std::string_view bytes;
};

constexpr std::array kOtherFormats = {
    OtherFormat{"TIFF", 0, "II*\0"sv},
    OtherFormat{"TIFF", 0, "MM\0*"sv},
    OtherFormat{"TIFF", 0, "II+\0"sv},
    OtherFormat{"TIFF", 0, "MM\0+"sv},
    OtherFormat{"BMP", 0, "BM"sv},
    OtherFormat{"GIF", 0, "GIF87a"sv},
    OtherFormat{"GIF", 0, "GIF89a"sv},
    OtherFormat{"JPEG XL", 0, "\xFF\x0A"sv},
    OtherFormat{"JPEG XL", 4, "JXL \r\n\x87\n"sv},
    OtherFormat{"PDF", 0, "%PDF-"sv},
    OtherFormat{"JPEG 2000", 4, "jP  \r\n\x87\n"sv},
    OtherFormat{"ICO", 0, "\0\0\1\0"sv},
    OtherFormat{"PPM", 0, "P6\n"sv},
    OtherFormat{"an HTML page", 0, "<!DOCTYPE html"sv},
    OtherFormat{"an HTML page", 0, "<!doctype html"sv},
    OtherFormat{"an HTML page", 0, "<html"sv},
    OtherFormat{"a Git LFS pointer (`git lfs pull` fetches the file)", 0, "version https://git-lfs."sv},
};

// ISO/IEC 14496-12, 4.3: "ftyp", the file's brand, a version, and the brands that it is compatible with.
std::string_view NameOfIsoMedia(std::string_view bytes) {
  if (bytes.size() < 12 || bytes.substr(4, 4) != "ftyp") return {};
  const auto length = std::min<uint64_t>(ReadNumber(bytes.substr(0, 4), ByteOrder::kBigEndian), bytes.size());
  bool heif = false;
  for (uint64_t at = 8; at + 4 <= length; at += at == 8 ? 8 : 4) {
    const std::string_view brand = bytes.substr(at, 4);
    if (brand == "avif" || brand == "avis") return "AVIF";
    heif = heif || brand.starts_with("hei") || brand.starts_with("hev") || brand == "mif1" || brand == "msf1";
  }
  return heif ? "HEIC" : std::string_view();
}

// Whether the file begins with XML, a comment or a document type, and contains an element <svg>.
bool IsSvg(std::string_view bytes) {
  constexpr size_t kSearched = 4096;
  if (bytes.starts_with("\xEF\xBB\xBF")) bytes.remove_prefix(3);
  const size_t start = bytes.find_first_not_of(" \t\r\n");
  if (start == std::string_view::npos) return false;
  bytes = bytes.substr(start, kSearched);
  const bool xml = bytes.starts_with("<?xml") || bytes.starts_with("<!");
  return bytes.starts_with("<svg") || (xml && bytes.find("<svg") != std::string_view::npos);
}

// The name of a format that is not supported; empty for an unknown format.
std::string_view NameOfOtherFormat(std::string_view bytes) {
  for (const OtherFormat& other : kOtherFormats) {
    if (bytes.size() > other.offset && bytes.substr(other.offset).starts_with(other.bytes)) return other.name;
  }
  if (const std::string_view name = NameOfIsoMedia(bytes); !name.empty()) return name;
  return IsSvg(bytes) ? "SVG" : std::string_view();
}

absl::Status NotDecoded(std::string_view bytes) {
  if (bytes.empty()) return absl::InvalidArgumentError("the image has no bytes");
  const std::string_view name = NameOfOtherFormat(bytes);
  if (name.empty()) return absl::InvalidArgumentError("the bytes are not a JPEG, PNG or WebP image");
  return absl::InvalidArgumentError(absl::StrCat("the image is ", std::string(name),
                                                 "; the server decodes JPEG, PNG and WebP; convert it to PNG or JPEG"));
}

absl::StatusOr<ImageHeader> ReadHeader(std::string_view bytes) {
  if (bytes.starts_with("\xFF\xD8\xFF"sv)) return ReadJpegHeader(bytes);
  if (bytes.starts_with("\x89PNG\r\n\x1A\n"sv)) return ReadPngHeader(bytes);
  if (bytes.starts_with("RIFF"sv) && bytes.size() > 8 && bytes.substr(8).starts_with("WEBP"sv)) {
    return ReadWebpHeader(bytes);
  }
  return NotDecoded(bytes);
}

}  // namespace

absl::StatusOr<ImageHeader> ReadImageHeader(std::string_view bytes, const ImageLimits& limits) {
  if (static_cast<int64_t>(bytes.size()) > limits.max_bytes) {
    return absl::InvalidArgumentError(
        absl::StrFormat("the image has %d bytes; the limit is %d", bytes.size(), limits.max_bytes));
  }
  LS_ASSIGN_OR_RETURN(const ImageHeader header, ReadHeader(bytes));
  LS_RETURN_IF_ERROR(CheckSize(header.size, limits));
  return header;
}

absl::Status CheckSize(const ImageSize& size, const ImageLimits& limits) {
  const auto [height, width] = size;
  if (height < 1 || width < 1) {
    return absl::InvalidArgumentError(absl::StrFormat("the image has no pixels: %d x %d", width, height));
  }
  if (height > limits.max_side || width > limits.max_side) {
    return absl::InvalidArgumentError(absl::StrFormat("the image is %d x %d pixels; the limit is %d pixels per side",
                                                      width, height, limits.max_side));
  }
  if (height > limits.max_pixels / width) {
    return absl::InvalidArgumentError(
        absl::StrFormat("the image is %d x %d = %d pixels; the limit is %d; make it smaller", width, height,
                        width * height, limits.max_pixels));
  }
  return absl::OkStatus();
}

}  // namespace longshort::models
