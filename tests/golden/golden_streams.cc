#include "tests/golden/golden_streams.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "models/weights/safetensors.h"
#include "tests/golden/golden_tensors.h"

namespace longshort {
namespace {

constexpr int32_t kPaddingToken = 0;

// What a file expects of a piece of every stream: log-probabilities [batch, positions.size(), V].
struct Piece {
  Values<int64_t> tokens;          // [batch, T]
  std::vector<int64_t> positions;  // into the T tokens
  Values<float> logprobs;
};

absl::StatusOr<Piece> ReadPiece(const models::SafetensorsFile& file, const std::string& prefix, int64_t length,
                                const models::LanguageModelInfo& info) {
  Piece piece;
  LS_ASSIGN_OR_RETURN(piece.tokens, ReadValues<int64_t>(file, prefix + "tokens", models::DataType::kI64, 2));
  LS_ASSIGN_OR_RETURN(piece.logprobs, ReadValues<float>(file, prefix + "logprobs", models::DataType::kF32, 3));
  if (file.Find(prefix + "positions") != nullptr) {
    LS_ASSIGN_OR_RETURN(Values<int64_t> positions,
                        ReadValues<int64_t>(file, prefix + "positions", models::DataType::kI64, 1));
    piece.positions = std::move(positions.values);
  } else {
    piece.positions.resize(length);
    std::iota(piece.positions.begin(), piece.positions.end(), 0);
  }
  const int64_t batch = piece.tokens.shape[0];
  const auto count = static_cast<int64_t>(piece.positions.size());
  const auto outside = [length](int64_t position) { return position < 0 || position >= length; };
  if (piece.tokens.shape[1] != length ||
      piece.logprobs.shape != std::vector<int64_t>{batch, count, info.vocabulary_size} ||
      std::any_of(piece.positions.begin(), piece.positions.end(), outside)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: %stokens [%s] and %slogprobs [%s] do not fit %d tokens and a vocabulary of %d",
                        file.name(), prefix, absl::StrJoin(piece.tokens.shape, ", "), prefix,
                        absl::StrJoin(piece.logprobs.shape, ", "), length, info.vocabulary_size));
  }
  return piece;
}

// Appends the piece's tokens and expectations to each stream.
void Append(const Piece& piece, int64_t vocabulary_size, std::vector<GoldenStream>& streams) {
  const int64_t length = piece.tokens.shape[1];
  const auto count = static_cast<int64_t>(piece.positions.size());
  for (size_t row = 0; row < streams.size(); ++row) {
    GoldenStream& stream = streams[row];
    const auto tokens = piece.tokens.values.begin() + row * length;
    const int64_t start = stream.length();
    stream.tokens.insert(stream.tokens.end(), tokens, tokens + length);
    stream.expected.resize(stream.tokens.size());
    for (int64_t i = 0; i < count; ++i) {
      const auto first = piece.logprobs.values.begin() + (row * count + i) * vocabulary_size;
      stream.expected[start + piece.positions[i]].assign(first, first + vocabulary_size);
    }
  }
}

void AppendPadding(int64_t count, std::vector<GoldenStream>& streams) {
  for (GoldenStream& stream : streams) {
    stream.tokens.insert(stream.tokens.end(), count, kPaddingToken);
    stream.expected.resize(stream.tokens.size());
  }
}

// How many tokens the official code appends to a segment of this length.
int64_t PaddingAfter(int64_t length, const models::LanguageModelInfo& info) {
  if (length % info.chunk_size == 0) return 0;
  const int64_t multiple = std::lcm(info.chunk_size, info.window_length);
  return (multiple - length % multiple) % multiple;
}

void SetSegmentStarts(absl::Span<const int64_t> lengths, std::vector<GoldenStream>& streams) {
  std::vector<int64_t> starts(lengths.size());
  std::exclusive_scan(lengths.begin(), lengths.end(), starts.begin(), int64_t{0});
  for (GoldenStream& stream : streams) stream.segment_starts = starts;
}

}  // namespace

int64_t GoldenStream::SegmentStart(int64_t position) const {
  return *(std::upper_bound(segment_starts.begin(), segment_starts.end(), position) - 1);
}

int64_t GoldenStream::SegmentEnd(int64_t position) const {
  const auto next = std::upper_bound(segment_starts.begin(), segment_starts.end(), position);
  return next == segment_starts.end() ? length() : *next;
}

absl::StatusOr<std::vector<GoldenStream>> ReadGoldenStreams(const std::string& path, absl::Span<const int64_t> segments,
                                                            const models::LanguageModelInfo& info) {
  LS_ASSIGN_OR_RETURN(const models::SafetensorsFile file, models::SafetensorsFile::Open(path));
  std::vector<GoldenStream> streams;
  if (file.Find("tokens") != nullptr) {
    const int64_t length = std::accumulate(segments.begin(), segments.end(), int64_t{0});
    LS_ASSIGN_OR_RETURN(const Piece piece, ReadPiece(file, "", length, info));
    streams.resize(piece.tokens.shape[0]);
    Append(piece, info.vocabulary_size, streams);
    SetSegmentStarts(segments, streams);
    return streams;
  }

  std::vector<int64_t> fed_lengths;
  for (size_t index = 0; index < segments.size(); ++index) {
    LS_ASSIGN_OR_RETURN(const Piece piece, ReadPiece(file, absl::StrFormat("seg%02d.", index), segments[index], info));
    if (index == 0) streams.resize(piece.tokens.shape[0]);
    if (static_cast<int64_t>(streams.size()) != piece.tokens.shape[0]) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": segment ", index, " has another batch than the first"));
    }
    Append(piece, info.vocabulary_size, streams);
    const int64_t padding = index + 1 < segments.size() ? PaddingAfter(segments[index], info) : 0;
    AppendPadding(padding, streams);
    fed_lengths.push_back(segments[index] + padding);
  }
  SetSegmentStarts(fed_lengths, streams);
  return streams;
}

}  // namespace longshort
