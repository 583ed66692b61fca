// What the engine needs of a model, in plain types: no LibTorch, no gRPC.
//
// A language model is stateful, but keeps no state of a sequence itself: all of it lives in cache pages, which the
// caller names by number. Which page belongs to whom is the caller's bookkeeping (core/cache); what a page holds is the
// model's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/model_weights.h"

namespace longshort::models {

enum class PageKind { kWindow, kSegment, kOpenChunk };

// How many pages of each kind a cache has, or a sequence needs.
struct CachePages {
  int64_t window = 0;      // normalised keys and values of P tokens, all layers
  int64_t segment = 0;     // compressed keys and values of finished chunks, P vectors, all layers
  int64_t open_chunk = 0;  // raw rows of the chunk that is not full yet, all layers

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

// How a device keeps the pages of a model.
struct PageFormat {
  int64_t rows_per_page = 0;    // P: tokens in a window page, and compressed vectors in a segment page
  CachePages page_bytes = {};   // of one page of each kind
  int64_t workspace_bytes = 0;  // of the device's memory, what each worker takes beside weights and pages
  // How the bytes of pages are to be read: models whose layouts are equal (and fingerprints, M and L) can read each
  // other's pages. Short text.
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

// What a language model is, and how its device keeps its pages.
struct LanguageModelInfo : LanguageModelShape, PageFormat {
  int64_t parameters = 0;        // tied embedding counted once
  std::string precision = {};    // "fp32" or "bf16"
  std::string fingerprint = {};  // hex SHA-256 of config.json, vocabulary.txt and model.safetensors
};

// Rows first .. end-1 of a page (of an open chunk: of its C rows).
struct PageRows {
  int64_t first = 0;
  int64_t end = 0;
};

using PageId = int32_t;
// Stands for a page of zero memory: the rows before a stream's first token. Never written.
inline constexpr PageId kZeroPage = -1;

// Some pages of one sequence: page `first + i` on the absolute grid is `ids[i]`. Page n of the grid holds rows n*P
// up to (n+1)*P. Pages below 0, before the stream's first token, are always kZeroPage; so are those before the token at
// which a sequence began to be read, if that was a later one. Every other id stands at one place only: the rows of all
// tokens of a slice are written before any of them sees anything.
struct PageRange {
  int64_t first = 0;
  absl::Span<const PageId> ids;
};

// Some new tokens of one sequence. The spans must stay valid during Step.
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
  // up to the last chunk that this slice finishes.
  PageRange memory_pages;
  // The same vectors as the current segment sees them ("project, then mix"), from chunk s/C.
  PageRange segment_pages;
  // The chunk that tokens[0] continues, and after the step the one left unfinished.
  PageId open_chunk = 0;

  // Logits are wanted for the last `logit_rows` tokens of the slice: row i predicts the token after it. 0 to
  // tokens.size().
  int64_t logit_rows = 0;
};

// What one step computed, for tests and metrics.
struct StepCounts {
  int64_t projected_rows = 0;   // rows through the query/key/value projections, summed over layers
  int64_t compressed_rows = 0;  // rows through the key/value projections of finished chunks, summed over layers
  int64_t output_rows = 0;      // rows through the output embedding
  bool was_replayed = false;    // by a graph, on a GPU
};

struct StepResult {
  // [sum of logit_rows over the slices, V], slices in order. Owned by the model, valid until its next Step.
  absl::Span<const float> logits;
  StepCounts counts;
};

// The autoregressive model, without a cache at first. One thread at a time calls it: a worker owns its replica.
//
// A result depends on the weights, M, L, the precision and the tokens of the sequence only: not on how its history was
// cut into slices, nor on the other slices of a step (up to rounding in the library's matrix products).
class LanguageModel {
 public:
  virtual ~LanguageModel() = default;

  virtual const LanguageModelInfo& info() const = 0;

  // Makes room for `pages` pages of each kind, numbered from 0; what was cached before is gone. Memory is taken from
  // the system only as pages are first written. Errors: RESOURCE_EXHAUSTED.
  virtual absl::Status AllocateCache(const CachePages& pages) = 0;

  // Runs every slice one step on, as one batch of rows: one matrix product per weight, whatever the number of slices.
  // At most one slice per sequence. Errors: INVALID_ARGUMENT for a slice that breaks what is said above (nothing is
  // run); RESOURCE_EXHAUSTED if there is no memory, INTERNAL if the library fails (then what these slices write is
  // undefined: rows of their tokens, vectors of chunks that they finish, their open chunks; all other rows stay).
  virtual absl::StatusOr<StepResult> Step(absl::Span<const Slice> slices) = 0;

  // There is nothing to do for a while: lets others have what only a step needs. The next step takes it
  // again.
  virtual void Rest() {}

  // Makes page `to` a copy of page `from`, of the same kind; of kZeroPage nothing is copied.
  // Errors: INVALID_ARGUMENT for a page that does not exist, INTERNAL if the device fails.
  virtual absl::Status CopyPage(PageKind kind, PageId from, PageId to) = 0;

  // A page's bytes, as many as info() says; those of other rows are zeros, because what lies there may be another
  // sequence's. Errors: as CopyPage, and INVALID_ARGUMENT for rows that a page does not have.
  virtual absl::StatusOr<std::string> ReadPage(PageKind kind, PageId page, const PageRows& rows) const = 0;
  // Errors: as CopyPage, and INVALID_ARGUMENT if there are not as many bytes as a page has.
  virtual absl::Status WritePage(PageKind kind, PageId page, std::string_view bytes) = 0;
};

using LanguageModelWeights = ModelWeights<LanguageModel, LanguageModelInfo>;

}  // namespace longshort::models
