// A language model that knows what every row of its cache must be, and refuses a step in which one is not.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/model.h"

namespace longshort::core {

// What a sequence has read, as the test knows it: the model compares pages with it. Rows before `begin` must be zero.
class Witness final {
 public:
  explicit Witness(int64_t begin = 0) : begin_(begin) {}

  void Append(int32_t token);
  void CutTo(int64_t position) { hashes_.resize(position - begin_); }

  int64_t begin() const { return begin_; }
  int64_t end() const { return begin_ + static_cast<int64_t>(hashes_.size()); }
  // A number for the tokens begin .. position and nothing else; position is one of them.
  uint64_t At(int64_t position) const { return hashes_[position - begin_]; }

 private:
  int64_t begin_;
  std::vector<uint64_t> hashes_;
};

// A row holds a number for the whole history up to its last token, its place and its form. A step checks each row that
// its queries can see, then writes the new ones. Pages hold rubbish until they are written.
class WitnessModel final : public models::LanguageModel {
 public:
  explicit WitnessModel(models::LanguageModelInfo info) : info_(std::move(info)) {
    const int64_t row_bytes = sizeof(uint64_t), page = row_bytes * info_.rows_per_page;
    info_.page_bytes = {.window = page, .segment = page, .open_chunk = row_bytes * info_.chunk_size};
  }

  // One for each slice of the next Step: its sequence's history with the slice's tokens.
  std::vector<const Witness*> witnesses;

  const models::LanguageModelInfo& info() const override { return info_; }
  absl::Status AllocateCache(const models::CachePages& pages) override;
  // Errors: INTERNAL naming the first row that is not what it must be.
  absl::StatusOr<models::StepResult> Step(absl::Span<const models::Slice> slices) override;
  absl::Status CopyPage(models::PageKind kind, models::PageId from, models::PageId to) override;
  absl::StatusOr<std::string> ReadPage(models::PageKind kind, models::PageId page,
                                       const models::PageRows& rows) const override;
  absl::Status WritePage(models::PageKind kind, models::PageId page, std::string_view bytes) override;

  int64_t checked_rows() const { return checked_rows_; }

 private:
  using Page = std::vector<uint64_t>;

  std::vector<Page>& PagesOf(models::PageKind kind);
  absl::Status Check(const models::Slice& slice, const Witness& witness);
  absl::Status CheckVectors(const models::PageRange& range, uint64_t form, int64_t first_chunk, int64_t end_chunk,
                            const Witness& witness);
  absl::Status CheckRow(const std::vector<Page>& pages, const models::PageRange& range, int64_t row, bool zero,
                        uint64_t expected);
  void Write(const models::Slice& slice, const Witness& witness);

  models::LanguageModelInfo info_;
  std::vector<Page> window_;
  std::vector<Page> segment_;
  std::vector<Page> open_chunk_;
  int64_t checked_rows_ = 0;
};

}  // namespace longshort::core
