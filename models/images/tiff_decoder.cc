#include "models/images/tiff_decoder.h"

#include <tiffio.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace longshort {
namespace {

static_assert(std::endian::native == std::endian::little,
              "libtiff packs red, green, blue, alpha from the lowest byte up");

struct TiffCloser {
  void operator()(TIFF* tiff) const { TIFFClose(tiff); }
};
using Tiff = std::unique_ptr<TIFF, TiffCloser>;

// A file in memory as libtiff's client: its header is read, and its strips and tiles are taken where they stand.
struct Client {
  const std::string& file;
  toff_t at = 0;
  std::string first_error = {};
};
Client& ClientOf(thandle_t handle) { return *static_cast<Client*>(handle); }

tmsize_t Read(thandle_t handle, void* bytes, tmsize_t count) {
  Client& client = ClientOf(handle);
  const size_t left = client.file.size() - std::min<toff_t>(client.at, client.file.size());
  const size_t taken = std::min(left, static_cast<size_t>(count));
  std::memcpy(bytes, client.file.data() + client.at, taken);
  client.at += taken;
  return static_cast<tmsize_t>(taken);
}
tmsize_t WriteNothing(thandle_t /*handle*/, void* /*bytes*/, tmsize_t /*count*/) { return -1; }
toff_t Size(thandle_t handle) { return ClientOf(handle).file.size(); }
toff_t Seek(thandle_t handle, toff_t offset, int whence) {
  Client& client = ClientOf(handle);
  const toff_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? client.at : Size(handle);
  return client.at = from + offset;
}
int CloseNothing(thandle_t /*handle*/) { return 0; }
int Map(thandle_t handle, void** base, toff_t* size) {
  *base = const_cast<char*>(ClientOf(handle).file.data());  // libtiff does not write to them
  *size = Size(handle);
  return 1;
}
void Unmap(thandle_t /*handle*/, void* /*base*/, toff_t /*size*/) {}

// Keeps the first error, in printable ASCII, for the status; nothing is printed.
int KeepFirst(TIFF* /*tiff*/, void* client, const char* /*module*/, const char* format, va_list values) {
  std::string& first = static_cast<Client*>(client)->first_error;
  if (!first.empty()) return 1;
  std::array<char, 200> message = {};
  std::vsnprintf(message.data(), message.size(), format, values);
  first = message.data();
  for (char& byte : first) byte = absl::ascii_isprint(static_cast<unsigned char>(byte)) ? byte : '?';
  return 1;
}
int DropWarning(TIFF* /*tiff*/, void* /*client*/, const char* /*module*/, const char* /*format*/, va_list /*values*/) {
  return 1;
}

Tiff Open(Client& client) {
  const std::unique_ptr<TIFFOpenOptions, void (*)(TIFFOpenOptions*)> options(TIFFOpenOptionsAlloc(),
                                                                             TIFFOpenOptionsFree);
  if (options == nullptr) return nullptr;
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), KeepFirst, &client);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), DropWarning, nullptr);
  return Tiff(TIFFClientOpenExt("image", "r", &client, Read, WriteNothing, Seek, CloseNothing, Size, Map, Unmap,
                                options.get()));
}

// What libtiff takes the page for must be what was let pass.
bool HasHeader(TIFF* tiff, const TiffHeader& header) {
  uint32_t width = 0, height = 0;
  uint16_t bits = 0, samples = 0;
  return TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &width) == 1 && TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &height) == 1 &&
         TIFFGetFieldDefaulted(tiff, TIFFTAG_BITSPERSAMPLE, &bits) == 1 &&
         TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLESPERPIXEL, &samples) == 1 && width == header.size.width &&
         height == header.size.height && bits == header.bits_per_sample && samples == header.samples;
}

bool ReadStrips(TIFF* tiff, StoredPixels& samples) {
  uint32_t rows_per_strip = 0;
  TIFFGetFieldDefaulted(tiff, TIFFTAG_ROWSPERSTRIP, &rows_per_strip);
  const auto height = static_cast<uint32_t>(samples.size.height);
  const auto row_bytes = static_cast<tmsize_t>(samples.RowBytes());
  if (rows_per_strip == 0 || TIFFScanlineSize(tiff) != row_bytes) return false;
  for (uint32_t row = 0; row < height; row += std::min(rows_per_strip, height - row)) {
    const tmsize_t bytes = row_bytes * std::min(rows_per_strip, height - row);
    const uint32_t strip = TIFFComputeStrip(tiff, row, 0);
    if (TIFFReadEncodedStrip(tiff, strip, samples.Row(row), bytes) != bytes) return false;
  }
  return true;
}

bool ReadTiles(TIFF* tiff, StoredPixels& samples) {
  uint32_t tile_width = 0, tile_height = 0;
  TIFFGetField(tiff, TIFFTAG_TILEWIDTH, &tile_width);
  TIFFGetField(tiff, TIFFTAG_TILELENGTH, &tile_height);
  StoredPixels tile({tile_height, tile_width}, samples.channels, samples.sample_bytes);
  const auto bytes = static_cast<tmsize_t>(tile.bytes.size());
  if (bytes == 0 || TIFFTileSize(tiff) != bytes) return false;
  const auto pixel_bytes = samples.channels * samples.sample_bytes;
  const auto [all_rows, all_columns] = samples.size;
  for (int64_t top = 0; top < all_rows; top += tile.size.height) {
    for (int64_t left = 0; left < all_columns; left += tile.size.width) {
      const auto x = static_cast<uint32_t>(left), y = static_cast<uint32_t>(top);
      if (TIFFReadTile(tiff, tile.bytes.data(), x, y, 0, 0) != bytes) return false;
      const auto count = static_cast<size_t>(std::min(tile.size.width, all_columns - left) * pixel_bytes);
      for (int64_t row = 0; row < std::min(tile.size.height, all_rows - top); ++row) {
        std::memcpy(samples.Row(top + row) + left * pixel_bytes, tile.Row(row), count);
      }
    }
  }
  return true;
}

bool ReadSamples(TIFF* tiff, const TiffHeader& header, StoredPixels& samples) {
  if (header.bits_per_sample == 16) {
    samples = StoredPixels(header.size, header.samples, 2);
    return TIFFIsTiled(tiff) != 0 ? ReadTiles(tiff, samples) : ReadStrips(tiff, samples);
  }
  samples = StoredPixels(header.size, 4);
  constexpr int kStopAtErrors = 1;
  return TIFFReadRGBAImageOriented(
             tiff, static_cast<uint32_t>(header.size.width), static_cast<uint32_t>(header.size.height),
             reinterpret_cast<uint32_t*>(samples.bytes.data()), ORIENTATION_TOPLEFT, kStopAtErrors) == 1;
}

}  // namespace

absl::StatusOr<StoredPixels> DecodeTiffSamples(const std::string& file, const TiffHeader& header) {
  Client client{file};
  StoredPixels samples;
  const Tiff tiff = Open(client);
  if (tiff != nullptr && HasHeader(tiff.get(), header)) {
    uint16_t compression = COMPRESSION_NONE;
    TIFFGetFieldDefaulted(tiff.get(), TIFFTAG_COMPRESSION, &compression);
    // Of broken data that fill a strip early libdeflate, which libtiff prefers, says nothing; zlib does.
    const bool deflate = compression == COMPRESSION_DEFLATE || compression == COMPRESSION_ADOBE_DEFLATE;
    if (deflate) TIFFSetField(tiff.get(), TIFFTAG_DEFLATE_SUBCODEC, DEFLATE_SUBCODEC_ZLIB);
    const bool read = ReadSamples(tiff.get(), header, samples);
    // libtiff tells of LZMA's wrong checksums, and goes on.
    const bool told = compression == COMPRESSION_LZMA && !client.first_error.empty();
    if (read && !told) return samples;
  }
  std::string& error = client.first_error;
  if (error.empty()) error = "its data are broken or end early";
  return absl::InvalidArgumentError(absl::StrCat("the TIFF image cannot be decoded: ", error));
}

}  // namespace longshort
