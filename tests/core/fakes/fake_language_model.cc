#include "tests/core/fakes/fake_language_model.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tests/core/fakes/fake_rows.h"

namespace longshort::core {
namespace {

constexpr uint64_t kZeroRow = 11;
constexpr uint64_t kZeroVector = 13;
constexpr uint64_t kFormA = 17;
constexpr uint64_t kFormB = 19;

uint64_t Append(uint64_t hash, uint64_t value) { return Mix(hash ^ Mix(value)); }

uint64_t RowOf(int32_t token) { return 1000 + static_cast<uint64_t>(token); }

uint64_t VectorOf(uint64_t form, absl::Span<const int32_t> chunk, int64_t t) {
  uint64_t hash = Append(form, static_cast<uint64_t>(t));
  for (int32_t token : chunk) hash = Append(hash, RowOf(token));
  return hash;
}

// In [-4, 4).
float Logit(uint64_t hash, int64_t token) {
  const uint64_t bits = Mix(hash + static_cast<uint64_t>(token)) >> 40;
  return static_cast<float>(bits) * 0x1.0p-21f - 4.0f;
}

// Where a row of the grid lies: its page (kZeroPage for zero memory), or nothing if the range lacks it.
struct Place {
  bool found = false;
  models::PageId page = models::kZeroPage;
  int64_t row = 0;
};

Place PlaceOf(const models::PageRange& range, int64_t page_rows, int64_t row) {
  const int64_t page = FloorDivide(row, page_rows);
  const int64_t index = page - range.first;
  if (index < 0 || index >= static_cast<int64_t>(range.ids.size())) return {};
  return {.found = true, .page = range.ids[index], .row = row - page * page_rows};
}

absl::Status CheckRange(const models::PageRange& range, const char* kind, int64_t page_rows, int64_t first_row,
                        int64_t end_row, size_t pages) {
  for (int64_t row = first_row; row < end_row; ++row) {
    const Place place = PlaceOf(range, page_rows, row);
    if (!place.found) return absl::InvalidArgumentError(absl::StrCat(kind, " row ", row, " lies on no page"));
    const bool may_be =
        place.page == models::kZeroPage || (row >= 0 && place.page < static_cast<models::PageId>(pages));
    if (!may_be) return absl::InvalidArgumentError(absl::StrCat(kind, " row ", row, " lies on page ", place.page));
  }
  return absl::OkStatus();
}

// A page stands for one page of the grid only.
absl::Status CheckNoPageStandsTwice(const models::PageRange& range, const char* kind) {
  for (size_t place = 0; place < range.ids.size(); ++place) {
    const auto before = range.ids.first(place);
    if (range.ids[place] != models::kZeroPage &&
        std::find(before.begin(), before.end(), range.ids[place]) != before.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("two ", kind, " pages of a slice are both page ", range.ids[place]));
    }
  }
  return absl::OkStatus();
}

}  // namespace

models::LanguageModelInfo SmallModelInfo() {
  models::LanguageModelInfo info;
  info.layers = 1;
  info.chunk_size = 4;
  info.chunk_rank = 12;
  info.window_length = 70;
  info.memory_length = 72;
  info.segment_length = 24;
  info.rows_per_page = 64;
  info.vocabulary_size = 16;
  info.page_bytes = {.window = 1000, .segment = 100, .open_chunk = 10};
  info.cache_layout = "fake";
  return info;
}

models::LanguageModelInfo SmallModelInfoWithRealPages() {
  models::LanguageModelInfo info = SmallModelInfo();
  info.page_bytes = {.window = info.rows_per_page * static_cast<int64_t>(sizeof(int32_t)),
                     .segment = info.rows_per_page * static_cast<int64_t>(sizeof(uint64_t)),
                     .open_chunk = info.chunk_size * static_cast<int64_t>(sizeof(int32_t))};
  return info;
}

models::LanguageModelWeights::Replica FakeLanguageModel::Replicate(const models::WorkerDevice& device) const {
  if (original_->on_device) original_->on_device(device);
  if (original_->on_replicate) LS_RETURN_IF_ERROR(original_->on_replicate());
  auto replica = std::make_unique<FakeLanguageModel>(info_);
  replica->original_ = original_;
  return replica;
}

absl::Status FakeLanguageModel::AllocateCache(const models::CachePages& pages) {
  window_.assign(pages.window, std::vector<int32_t>(info_.rows_per_page, -7));
  segment_.assign(pages.segment, std::vector<uint64_t>(info_.rows_per_page, kRubbish));
  open_chunk_.assign(pages.open_chunk, std::vector<int32_t>(info_.chunk_size, -7));
  return absl::OkStatus();
}

absl::StatusOr<absl::Span<char>> FakeLanguageModel::PageMemory(models::PageKind kind, models::PageId page) {
  const auto memory_of = [page](auto& pages) -> absl::StatusOr<absl::Span<char>> {
    if (page < 0 || page >= static_cast<models::PageId>(pages.size())) {
      return absl::InvalidArgumentError(absl::StrCat("page ", page, " does not exist"));
    }
    auto& rows = pages[page];
    return absl::MakeSpan(reinterpret_cast<char*>(rows.data()), rows.size() * sizeof(rows[0]));
  };
  if (kind == models::PageKind::kWindow) return memory_of(window_);
  return kind == models::PageKind::kSegment ? memory_of(segment_) : memory_of(open_chunk_);
}

absl::Status FakeLanguageModel::CopyPage(models::PageKind kind, models::PageId from, models::PageId to) {
  if (original_->on_copy) LS_RETURN_IF_ERROR(original_->on_copy());
  LS_ASSIGN_OR_RETURN(const absl::Span<char> source, PageMemory(kind, from));
  return WritePage(kind, to, {source.data(), source.size()});
}

absl::StatusOr<std::string> FakeLanguageModel::ReadPage(models::PageKind kind, models::PageId page,
                                                        const models::PageRows& rows) const {
  LS_ASSIGN_OR_RETURN(const absl::Span<char> memory, const_cast<FakeLanguageModel*>(this)->PageMemory(kind, page));
  const size_t row_bytes = kind == models::PageKind::kSegment ? sizeof(uint64_t) : sizeof(int32_t);
  std::string bytes(memory.size(), '\0');
  std::copy(memory.begin() + rows.first * row_bytes, memory.begin() + rows.end * row_bytes,
            bytes.begin() + rows.first * row_bytes);
  return bytes;
}

absl::Status FakeLanguageModel::WritePage(models::PageKind kind, models::PageId page, std::string_view bytes) {
  LS_ASSIGN_OR_RETURN(const absl::Span<char> memory, PageMemory(kind, page));
  if (bytes.size() != memory.size()) return absl::InvalidArgumentError("bytes of another page");
  std::copy(bytes.begin(), bytes.end(), memory.begin());
  return absl::OkStatus();
}

absl::StatusOr<models::StepResult> FakeLanguageModel::Step(absl::Span<const models::Slice> slices) {
  if (original_->on_step) LS_RETURN_IF_ERROR(original_->on_step(slices));
  for (const models::Slice& slice : slices) LS_RETURN_IF_ERROR(CheckSlice(slice));
  logits_.clear();
  for (const models::Slice& slice : slices) {
    for (size_t index = 0; index < slice.tokens.size(); ++index) RunToken(slice, static_cast<int64_t>(index));
  }
  if (original_->on_logits) original_->on_logits(logits_);
  return models::StepResult{.logits = logits_, .counts = {}};
}

absl::Status FakeLanguageModel::BeginStep(absl::Span<const models::Slice> slices) {
  if (begun() == steps_at_once()) return absl::FailedPreconditionError("too many steps at once");
  absl::Status status = Step(slices).status();
  begun_steps_.push_back({.status = std::move(status), .logits = logits_});
  return absl::OkStatus();
}

absl::StatusOr<models::StepResult> FakeLanguageModel::FinishStep() {
  if (begun_steps_.empty()) return absl::FailedPreconditionError("no step has begun");
  std::swap(finished_, begun_steps_.front());
  begun_steps_.pop_front();
  LS_RETURN_IF_ERROR(finished_.status);
  return models::StepResult{.logits = finished_.logits, .counts = {}, .device_time = original_->device_time};
}

absl::Status FakeLanguageModel::CheckSlice(const models::Slice& slice) const {
  const auto count = static_cast<int64_t>(slice.tokens.size());
  const int64_t start = slice.segment_start;
  const int64_t end = slice.position + count;
  const int64_t rank = info_.chunk_rank;
  const int64_t end_vector = end / info_.chunk_size * rank;
  if (count < 1) return absl::InvalidArgumentError("a slice without tokens");
  if (slice.logit_rows < 0 || slice.logit_rows > count) return absl::InvalidArgumentError("logit_rows out of range");
  if (start > slice.position || slice.position >= start + info_.segment_length) {
    return absl::InvalidArgumentError(absl::StrCat("position ", slice.position, " in the segment from ", start));
  }
  for (int32_t token : slice.tokens) {
    if (token < 0 || token >= info_.vocabulary_size) return absl::InvalidArgumentError(absl::StrCat("token ", token));
  }
  if (slice.open_chunk < 0 || slice.open_chunk >= static_cast<models::PageId>(open_chunk_.size())) {
    return absl::InvalidArgumentError(absl::StrCat("open chunk ", slice.open_chunk));
  }
  LS_RETURN_IF_ERROR(CheckRange(slice.window_pages, "window", info_.rows_per_page,
                                slice.position - info_.window_length + 1, end, window_.size()));
  LS_RETURN_IF_ERROR(CheckRange(slice.memory_pages, "memory", info_.rows_per_page,
                                (start - info_.memory_length) / info_.chunk_size * rank, end_vector, segment_.size()));
  LS_RETURN_IF_ERROR(CheckRange(slice.segment_pages, "segment", info_.rows_per_page, start / info_.chunk_size * rank,
                                end_vector, segment_.size()));
  LS_RETURN_IF_ERROR(CheckNoPageStandsTwice(slice.window_pages, "window"));
  LS_RETURN_IF_ERROR(CheckNoPageStandsTwice(slice.memory_pages, "memory"));
  return CheckNoPageStandsTwice(slice.segment_pages, "segment");
}

int64_t FakeLanguageModel::SegmentStart(const models::Slice& slice, int64_t position) const {
  return position - (position - slice.segment_start) % info_.segment_length;
}

void FakeLanguageModel::RunToken(const models::Slice& slice, int64_t index) {
  const int64_t position = slice.position + index;
  const Place place = PlaceOf(slice.window_pages, info_.rows_per_page, position);
  window_[place.page][place.row] = slice.tokens[index];
  open_chunk_[slice.open_chunk][position % info_.chunk_size] = slice.tokens[index];

  const uint64_t hash = HashOfQuery(slice, position, SegmentStart(slice, position));
  if (index >= static_cast<int64_t>(slice.tokens.size()) - slice.logit_rows) {
    for (int64_t token = 0; token < info_.vocabulary_size; ++token) logits_.push_back(Logit(hash, token));
  }
  if ((position + 1) % info_.chunk_size == 0) FinishChunk(slice, position / info_.chunk_size);
}

void FakeLanguageModel::FinishChunk(const models::Slice& slice, int64_t chunk) {
  const std::vector<int32_t>& tokens = open_chunk_[slice.open_chunk];
  for (int64_t t = 0; t < info_.chunk_rank; ++t) {
    const Place memory = PlaceOf(slice.memory_pages, info_.rows_per_page, chunk * info_.chunk_rank + t);
    const Place segment = PlaceOf(slice.segment_pages, info_.rows_per_page, chunk * info_.chunk_rank + t);
    segment_[memory.page][memory.row] = VectorOf(kFormB, tokens, t);
    segment_[segment.page][segment.row] = VectorOf(kFormA, tokens, t);
  }
}

uint64_t FakeLanguageModel::HashOfQuery(const models::Slice& slice, int64_t position, int64_t segment_start) const {
  uint64_t hash = 0;
  for (int64_t row = position - info_.window_length + 1; row <= position; ++row) {
    const Place place = PlaceOf(slice.window_pages, info_.rows_per_page, row);
    hash = Append(hash, place.page == models::kZeroPage ? kZeroRow : RowOf(window_[place.page][place.row]));
  }
  const int64_t rank = info_.chunk_rank;
  const int64_t first = (segment_start - info_.memory_length) / info_.chunk_size * rank;
  for (int64_t vector = first; vector < position / info_.chunk_size * rank; ++vector) {
    const bool in_segment = vector >= segment_start / info_.chunk_size * rank;
    const Place place = PlaceOf(in_segment ? slice.segment_pages : slice.memory_pages, info_.rows_per_page, vector);
    hash = Append(hash, place.page == models::kZeroPage ? kZeroVector : segment_[place.page][place.row]);
  }
  return hash;
}

std::vector<float> FakeLanguageModel::LogitsAfter(absl::Span<const int32_t> history) const {
  const int64_t chunk_size = info_.chunk_size;
  const int64_t position = static_cast<int64_t>(history.size()) - 1;
  const int64_t segment_start = position / info_.segment_length * info_.segment_length;
  uint64_t hash = 0;
  for (int64_t row = position - info_.window_length + 1; row <= position; ++row) {
    hash = Append(hash, row < 0 ? kZeroRow : RowOf(history[row]));
  }
  for (int64_t chunk = (segment_start - info_.memory_length) / chunk_size; chunk < position / chunk_size; ++chunk) {
    const uint64_t form = chunk * chunk_size >= segment_start ? kFormA : kFormB;
    for (int64_t t = 0; t < info_.chunk_rank; ++t) {
      hash = Append(hash, chunk < 0 ? kZeroVector : VectorOf(form, history.subspan(chunk * chunk_size, chunk_size), t));
    }
  }
  std::vector<float> logits;
  for (int64_t token = 0; token < info_.vocabulary_size; ++token) logits.push_back(Logit(hash, token));
  return logits;
}

}  // namespace longshort::core
