// The interface of a language model, as the engine uses it. Plain types only: no LibTorch, no gRPC.
//
// All state of a sequence lives in cache pages, which the caller names by number. The caller tracks which page belongs
// to which sequence (core/cache); the model defines the contents of a page.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "models/model_weights.h"

namespace longshort::models {

enum class PageKind { kWindow, kSegment, kOpenChunk };

// Numbers of pages of each kind that a cache has, or a sequence needs.
struct CachePages {
  int64_t window = 0;      // normalised keys and values of P tokens, all layers
  int64_t segment = 0;     // compressed keys and values of finished chunks, P vectors, all layers
  int64_t open_chunk = 0;  // raw rows of the chunk that is not yet full, all layers

  int64_t Of(PageKind kind) const {
    return kind == PageKind::kWindow ? window : kind == PageKind::kSegment ? segment : open_chunk;
  }
  friend CachePages operator+(const CachePages& a, const CachePages& b) {
    return {a.window + b.window, a.segment + b.segment, a.open_chunk + b.open_chunk};
  }
  friend CachePages operator-(const CachePages& a, const CachePages& b) {
    return {a.window - b.window, a.segment - b.segment, a.open_chunk - b.open_chunk};
  }
  friend CachePages operator*(const CachePages& pages, int64_t times) {
    return {pages.window * times, pages.segment * times, pages.open_chunk * times};
  }
};

// The largest step that a device has memory for.
struct StepLimits {
  int64_t rows = 512;
  int64_t logit_rows = 512;
};

// The page format of a model on one device, and the sizes of its steps there.
struct PageFormat {
  int64_t rows_per_page = 0;    // P: tokens in a window page, and compressed vectors in a segment page
  CachePages page_bytes = {};   // bytes of one page of each kind
  int64_t workspace_bytes = 0;  // device memory per worker, in addition to weights and pages
  StepLimits step_limits = {};
  // Identifies the byte layout of pages, as a short text. Models with equal layouts, fingerprints, M and L can read
  // each other's pages.
  std::string cache_layout = {};
};

// The paper's hyperparameters. Lengths are in tokens. The defaults are the enwik8 base model's.
struct LanguageModelShape {
  int64_t layers = 12;
  int64_t model_width = 512;          // d: even, a multiple of heads
  int64_t heads = 8;                  // H
  int64_t feed_forward_width = 2048;  // d_inner
  int64_t chunk_size = 16;            // C
  int64_t chunk_rank = 1;             // R: compressed vectors per chunk and head
  int64_t window_length = 512;        // W: a query sees itself and the W-1 tokens before it
  // M, a multiple of C, at least W: tokens before the current segment that a query sees in compressed form.
  int64_t memory_length = 8192;
  int64_t segment_length = 256;   // L: a multiple of C
  int64_t vocabulary_size = 208;  // V

  friend bool operator==(const LanguageModelShape&, const LanguageModelShape&) = default;
};

// Describes a language model, and its page format on one device.
struct LanguageModelInfo : LanguageModelShape, PageFormat {
  int64_t parameters = 0;        // the tied embedding is counted once
  std::string precision = {};    // "fp32", "bf16" or "int8"
  std::string fingerprint = {};  // ModelDirectory::fingerprint
};

// Rows first .. end-1 of a page. A page of an open chunk has C rows.
struct PageRows {
  int64_t first = 0;
  int64_t end = 0;
};

using PageId = int32_t;
// The page of zero memory: the rows before a stream's first token. Read-only.
inline constexpr PageId kZeroPage = -1;

// Some pages of one sequence: page `first + i` on the absolute grid is `ids[i]`. Page n of the grid holds rows n*P to
// (n+1)*P - 1. Pages below 0, before the stream's first token, are always kZeroPage. If the sequence was read from a
// later token on, the pages before that token are kZeroPage as well. Every other id occurs only once, because the rows
// of all tokens of a slice are written before any token attends.
struct PageRange {
  int64_t first = 0;
  absl::Span<const PageId> ids;
};

// New tokens of one sequence. The spans must stay valid during Step.
struct Slice {
  // At least one; each in [0, V).
  absl::Span<const int32_t> tokens;
  // Stream position of tokens[0].
  int64_t position = 0;
  // Start s of the segment that tokens[0] belongs to: s <= position < s + L. A later token of the slice belongs to the
  // segment that starts at s + n*L, so a slice may cross segment ends.
  int64_t segment_start = 0;

  // Window pages for every position from position-W+1 to the last token.
  PageRange window_pages;
  // Vectors of finished chunks as memory ("mix, then project"): vector j = chunk*R + t on the grid, from chunk (s-M)/C
  // to the last chunk that this slice finishes.
  PageRange memory_pages;
  // The same vectors as the current segment sees them ("project, then mix"), from chunk s/C.
  PageRange segment_pages;
  // Holds the chunk that tokens[0] continues; after the step, the chunk that is still unfinished.
  PageId open_chunk = 0;

  // The step returns logits for the last `logit_rows` tokens of the slice, 0 to tokens.size(). Row i predicts the next
  // token.
  int64_t logit_rows = 0;
};

// Work done in one step, for tests and metrics.
struct StepCounts {
  int64_t projected_rows = 0;   // rows through the query/key/value projections, summed over layers
  int64_t compressed_rows = 0;  // rows through the key/value projections of finished chunks, summed over layers
  int64_t output_rows = 0;      // rows through the output embedding
  bool was_replayed = false;    // run as a GPU graph
};

struct StepResult {
  // [sum of logit_rows over the slices, V], slices in order. Owned by the model, valid until its next Step, or until
  // the second BeginStep after this one's.
  absl::Span<const float> logits;
  StepCounts counts;
  // How long the device worked on the step, by its own clock; nullopt if the host did the work.
  std::optional<absl::Duration> device_time = std::nullopt;
};

// The autoregressive model. It has no cache until AllocateCache. Thread: one at a time; a worker owns its replica.
//
// A result depends on the weights, M, L, the precision and the tokens of the sequence only: not on how its history was
// cut into slices, nor on the other slices of a step (up to rounding in matrix products, which may depend on their
// rows: in int8 with AMX, and in bf16 on Intel's CPUs without AMX, numbers are rounded to bfloat16 for some numbers of
// rows only).
class LanguageModel {
 public:
  virtual ~LanguageModel() = default;

  virtual const LanguageModelInfo& info() const = 0;

  // Allocates `pages` pages of each kind, numbered from 0, and discards the previous cache. Memory is committed only
  // when a page is first written. Errors: RESOURCE_EXHAUSTED.
  virtual absl::Status AllocateCache(const CachePages& pages) = 0;

  // Runs all slices as one batch of rows, with one matrix product per weight. At most one slice per sequence.
  // Errors: INVALID_ARGUMENT for a slice that violates the rules above (nothing is run); RESOURCE_EXHAUSTED if there is
  // no memory; INTERNAL if the library fails. After the last two, the rows that these slices write are undefined (their
  // tokens, the vectors of chunks that they finish, their open chunks); all other rows are unchanged.
  virtual absl::StatusOr<StepResult> Step(absl::Span<const Slice> slices) = 0;

  // Step in two parts, for a device that works while the caller does something else: FinishStep waits for the first
  // step that has begun and is not finished. REQUIRES: fewer than steps_at_once() steps have begun; `slices` need not
  // stay valid after BeginStep. Errors: those of Step; the step has ended after an error of either part.
  virtual absl::Status BeginStep(absl::Span<const Slice> slices) {
    begun_ = Step(slices);
    return begun_.status();
  }
  virtual absl::StatusOr<StepResult> FinishStep() { return std::move(begun_); }
  virtual int64_t steps_at_once() const { return 1; }

  // Releases resources that only a step needs, while the worker is idle. The next step acquires them again.
  virtual void Rest() {}

  // Copies page `from` to page `to`, of the same kind; does nothing if `from` is kZeroPage.
  // Errors: INVALID_ARGUMENT for a page that does not exist, INTERNAL if the device fails.
  virtual absl::Status CopyPage(PageKind kind, PageId from, PageId to) = 0;

  // Returns a page's bytes (info().page_bytes). The bytes of other rows are zeros, because those rows may belong to
  // another sequence. Errors: as CopyPage, and INVALID_ARGUMENT for rows that a page does not have.
  virtual absl::StatusOr<std::string> ReadPage(PageKind kind, PageId page, const PageRows& rows) const = 0;
  // Errors: as CopyPage, and INVALID_ARGUMENT if `bytes` does not have the size of a page.
  virtual absl::Status WritePage(PageKind kind, PageId page, std::string_view bytes) = 0;

 private:
  absl::StatusOr<StepResult> begun_ = StepResult();
};

using LanguageModelWeights = ModelWeights<LanguageModel, LanguageModelInfo>;

}  // namespace longshort::models
