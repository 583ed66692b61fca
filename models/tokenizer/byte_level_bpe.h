// The byte-level BPE of RoBERTa and GPT-2, exact to Hugging Face's package `tokenizers`.
//
// Text that is not UTF-8 is read as Python reads it with errors="replace": U+FFFD stands for each maximal part of a
// character. Added tokens (</s>, <mask>) are found in the text. The rest is split into words, whose bytes are merged.
// A document's ids begin with <s> and end with </s>.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "models/tokenizer/tokenizer.h"

namespace longshort::models {

// Parses tokenizer.json. `text` is its content, and `name` its name in errors. The model has `vocabulary_size`
// embedding rows. If it joins pairs, `separator_id` is the token between them. `padding_id` is the token that it masks.
//
// EncodeBeginning cuts the text's ids, not <s> and </s>; a limit below 2 leaves <s> or nothing.
//
// Spans: the bytes of the text that the token stands for, without spaces at its ends if the file says trim_offsets.
// <s>, </s>, and a space that the tokenizer added have none. The characters are the offsets of `tokenizers`.
//
// Errors: those of ParseTokenizerJson; INVALID_ARGUMENT if the file's </s> is not `separator_id`, or <s> or </s> is
// `padding_id`. Of texts: INVALID_ARGUMENT for a word of more than 1 MiB.
absl::StatusOr<std::unique_ptr<TextEncoder>> LoadByteLevelBpe(std::string_view text, const std::string& name,
                                                              int64_t vocabulary_size,
                                                              std::optional<int32_t> separator_id = std::nullopt,
                                                              std::optional<int32_t> padding_id = std::nullopt);

}  // namespace longshort::models
