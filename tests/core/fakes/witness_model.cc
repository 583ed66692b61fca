#include "tests/core/fakes/witness_model.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tests/core/fakes/fake_rows.h"

namespace longshort::core {
namespace {

constexpr uint64_t kWindowRow = 3;
constexpr uint64_t kMemoryVector = 5;
constexpr uint64_t kSegmentVector = 7;
constexpr uint64_t kOpenRow = 11;

uint64_t RowOf(uint64_t form, uint64_t history, int64_t row) {
  return Mix(Mix(history ^ form) + static_cast<uint64_t>(row));
}

}  // namespace

void Witness::Append(int32_t token) {
  const uint64_t before = hashes_.empty() ? Mix(static_cast<uint64_t>(begin_)) : hashes_.back();
  hashes_.push_back(Mix(before ^ Mix(static_cast<uint64_t>(token) + 1)));
}

absl::Status WitnessModel::AllocateCache(const models::CachePages& pages) {
  window_.assign(pages.window, Page(info_.rows_per_page, kRubbish));
  segment_.assign(pages.segment, Page(info_.rows_per_page, kRubbish));
  open_chunk_.assign(pages.open_chunk, Page(info_.chunk_size, kRubbish));
  return absl::OkStatus();
}

absl::StatusOr<models::StepResult> WitnessModel::Step(absl::Span<const models::Slice> slices) {
  for (size_t i = 0; i < slices.size(); ++i) LS_RETURN_IF_ERROR(Check(slices[i], *witnesses[i]));
  for (size_t i = 0; i < slices.size(); ++i) Write(slices[i], *witnesses[i]);
  return models::StepResult{};
}

absl::Status WitnessModel::CopyPage(models::PageKind kind, models::PageId from, models::PageId to) {
  PagesOf(kind)[to] = PagesOf(kind)[from];
  return absl::OkStatus();
}

std::vector<WitnessModel::Page>& WitnessModel::PagesOf(models::PageKind kind) {
  return kind == models::PageKind::kWindow ? window_ : kind == models::PageKind::kSegment ? segment_ : open_chunk_;
}

absl::StatusOr<std::string> WitnessModel::ReadPage(models::PageKind kind, models::PageId page,
                                                   const models::PageRows& rows) const {
  const Page& source = const_cast<WitnessModel*>(this)->PagesOf(kind)[page];
  Page kept(source.size(), 0);
  std::copy(source.begin() + rows.first, source.begin() + rows.end, kept.begin() + rows.first);
  return std::string(reinterpret_cast<const char*>(kept.data()), kept.size() * sizeof(kept[0]));
}

absl::Status WitnessModel::WritePage(models::PageKind kind, models::PageId page, std::string_view bytes) {
  Page& target = PagesOf(kind)[page];
  if (bytes.size() != target.size() * sizeof(target[0])) return absl::InvalidArgumentError("bytes of another page");
  std::memcpy(target.data(), bytes.data(), bytes.size());
  return absl::OkStatus();
}

absl::Status WitnessModel::CheckRow(const std::vector<Page>& pages, const models::PageRange& range, int64_t row,
                                    bool zero, uint64_t expected) {
  const int64_t page = FloorDivide(row, info_.rows_per_page);
  const int64_t index = page - range.first;
  if (index < 0 || index >= static_cast<int64_t>(range.ids.size())) {
    return absl::InternalError(absl::StrCat("row ", row, " lies on no page"));
  }
  const models::PageId id = range.ids[index];
  ++checked_rows_;
  if (zero) {
    return id == models::kZeroPage ? absl::OkStatus()
                                   : absl::InternalError(absl::StrCat("row ", row, " is not zero memory"));
  }
  if (id < 0 || id >= static_cast<models::PageId>(pages.size())) {
    return absl::InternalError(absl::StrCat("row ", row, " lies on page ", id));
  }
  if (pages[id][row - page * info_.rows_per_page] == expected) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("row ", row, " is not what it must be"));
}

absl::Status WitnessModel::CheckVectors(const models::PageRange& range, uint64_t form, int64_t first_chunk,
                                        int64_t end_chunk, const Witness& witness) {
  for (int64_t chunk = first_chunk; chunk < end_chunk; ++chunk) {
    const bool zero = chunk * info_.chunk_size < witness.begin();
    const uint64_t history = zero ? 0 : witness.At((chunk + 1) * info_.chunk_size - 1);
    for (int64_t t = 0; t < info_.chunk_rank; ++t) {
      const int64_t vector = chunk * info_.chunk_rank + t;
      LS_RETURN_IF_ERROR(CheckRow(segment_, range, vector, zero, RowOf(form, history, vector)));
    }
  }
  return absl::OkStatus();
}

// What the slice's first query sees of the rows before it; the others see no older ones.
absl::Status WitnessModel::Check(const models::Slice& slice, const Witness& witness) {
  const int64_t position = slice.position;
  const int64_t chunk = position / info_.chunk_size;
  if (position + static_cast<int64_t>(slice.tokens.size()) != witness.end()) {
    return absl::InternalError("the slice is not the sequence's next one");
  }
  if (slice.segment_start != position / info_.segment_length * info_.segment_length) {
    return absl::InternalError("the slice's segment begins elsewhere");
  }
  for (int64_t row = position - info_.window_length + 1; row < position; ++row) {
    const bool zero = row < witness.begin();
    const uint64_t expected = zero ? 0 : RowOf(kWindowRow, witness.At(row), row);
    LS_RETURN_IF_ERROR(CheckRow(window_, slice.window_pages, row, zero, expected));
  }
  LS_RETURN_IF_ERROR(CheckVectors(slice.memory_pages, kMemoryVector,
                                  (slice.segment_start - info_.memory_length) / info_.chunk_size, chunk, witness));
  LS_RETURN_IF_ERROR(
      CheckVectors(slice.segment_pages, kSegmentVector, slice.segment_start / info_.chunk_size, chunk, witness));
  for (int64_t row = chunk * info_.chunk_size; row < position; ++row) {
    if (open_chunk_[slice.open_chunk][row % info_.chunk_size] != RowOf(kOpenRow, witness.At(row), row)) {
      return absl::InternalError(absl::StrCat("row ", row, " of the open chunk is not what it must be"));
    }
  }
  return absl::OkStatus();
}

void WitnessModel::Write(const models::Slice& slice, const Witness& witness) {
  const auto row_of = [page_rows = info_.rows_per_page](std::vector<Page>& pages, const models::PageRange& range,
                                                        int64_t row) -> uint64_t& {
    return pages[range.ids[row / page_rows - range.first]][row % page_rows];
  };
  const int64_t end = witness.end();
  for (int64_t position = slice.position; position < end; ++position) {
    const uint64_t history = witness.At(position);
    row_of(window_, slice.window_pages, position) = RowOf(kWindowRow, history, position);
    // As the real model, which keeps no row of a chunk that the slice finishes.
    if (position >= end / info_.chunk_size * info_.chunk_size) {
      open_chunk_[slice.open_chunk][position % info_.chunk_size] = RowOf(kOpenRow, history, position);
    }
    if ((position + 1) % info_.chunk_size != 0) continue;
    for (int64_t t = 0; t < info_.chunk_rank; ++t) {
      const int64_t vector = position / info_.chunk_size * info_.chunk_rank + t;
      row_of(segment_, slice.memory_pages, vector) = RowOf(kMemoryVector, history, vector);
      row_of(segment_, slice.segment_pages, vector) = RowOf(kSegmentVector, history, vector);
    }
  }
}

}  // namespace longshort::core
