#include "base/inflate.h"

#include <zlib.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace longshort {
namespace {

constexpr size_t kReadBytes = size_t{64} << 10;
// The largest window, and either format: their first bytes differ.
constexpr int kAnyFormat = MAX_WBITS + 32;

}  // namespace

Inflater::Inflater(Source source, int64_t max_bytes) : source_(std::move(source)), max_bytes_(max_bytes) {}

Inflater::~Inflater() {
  if (stream_ != nullptr) inflateEnd(stream_.get());
}

absl::StatusOr<size_t> Inflater::Read(char* buffer, size_t size) {
  if (stream_ == nullptr) {
    auto stream = std::make_unique<z_stream>();
    if (inflateInit2(stream.get(), kAnyFormat) != Z_OK) return absl::InternalError("zlib has no memory");
    stream_ = std::move(stream);
  }
  stream_->next_out = reinterpret_cast<Bytef*>(buffer);
  stream_->avail_out = static_cast<uInt>(size);
  while (stream_->avail_out > 0 && !ended_) LS_RETURN_IF_ERROR(Step());
  const size_t written = size - stream_->avail_out;
  bytes_ += static_cast<int64_t>(written);
  LS_RETURN_IF_ERROR(CheckInflation(static_cast<int64_t>(stream_->total_in), bytes_, max_bytes_));
  return written;
}

absl::Status Inflater::Step() {
  if (stream_->avail_in == 0) {
    const std::string_view packed = source_();
    if (packed.empty()) return absl::InvalidArgumentError("the compressed data is incomplete");
    stream_->next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
    stream_->avail_in = static_cast<uInt>(packed.size());
  }
  const int result = inflate(stream_.get(), Z_NO_FLUSH);
  if (result == Z_MEM_ERROR) return absl::InternalError("zlib has no memory");
  ended_ = result == Z_STREAM_END;
  if (result != Z_OK && !ended_) {
    return absl::InvalidArgumentError(
        absl::StrCat("the compressed data is damaged: ", stream_->msg == nullptr ? zError(result) : stream_->msg));
  }
  if (ended_ && (stream_->avail_in > 0 || !source_().empty())) {
    return absl::InvalidArgumentError("other bytes follow the compressed data");
  }
  return absl::OkStatus();
}

absl::Status CheckInflation(int64_t packed, int64_t content, int64_t max_bytes) {
  constexpr int64_t kFree = int64_t{1} << 20, kMaxRatio = 100;
  if (content > max_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat("the content has more than ", max_bytes, " bytes"));
  }
  if (content <= kFree || content / kMaxRatio <= packed) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("the content has more than ", kFree, " bytes and more than ",
                                                   kMaxRatio, " times the compressed data; send it uncompressed"));
}

absl::StatusOr<size_t> InflatedText::Append(size_t size,
                                            const std::function<absl::StatusOr<size_t>(char* place)>& write) {
  const size_t before = text_.size(), old_capacity = text_.capacity();
  if (before + size > old_capacity) {
    // A text of the greatest length has room for one more byte, by which the next Append finds that there is more.
    const size_t capacity = std::max(before + size, std::min(2 * old_capacity, static_cast<size_t>(max_bytes_) + 1));
    if (charge_ != nullptr) LS_RETURN_IF_ERROR(charge_(static_cast<int64_t>(old_capacity + capacity)));
    text_.reserve(capacity);
    if (charge_ != nullptr) LS_RETURN_IF_ERROR(charge_(static_cast<int64_t>(text_.capacity())));
  }
  text_.resize(before + size);
  LS_ASSIGN_OR_RETURN(const size_t written, write(text_.data() + before));
  text_.resize(before + written);
  return written;
}

absl::StatusOr<std::string> Inflate(std::string_view packed, int64_t max_bytes, InflatedText::Charge charge) {
  Inflater inflater([&packed] { return std::exchange(packed, std::string_view()); }, max_bytes);
  InflatedText text(max_bytes, std::move(charge));
  for (size_t read = kReadBytes; read == kReadBytes;) {
    LS_ASSIGN_OR_RETURN(read, text.Append(kReadBytes, [&](char* place) { return inflater.Read(place, kReadBytes); }));
  }
  return text.Take();
}

std::optional<std::string> Gzip(std::string_view content, int level) {
  constexpr int kWindow = MAX_WBITS + 16, kMemory = 8;  // the largest window with gzip's header, and zlib's default
  z_stream stream{};
  if (deflateInit2(&stream, level, Z_DEFLATED, kWindow, kMemory, Z_DEFAULT_STRATEGY) != Z_OK) return std::nullopt;
  std::string packed(deflateBound(&stream, content.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const bool is_whole = deflate(&stream, Z_FINISH) == Z_STREAM_END;
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return is_whole ? std::optional(std::move(packed)) : std::nullopt;
}

}  // namespace longshort
