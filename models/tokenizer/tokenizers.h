// The tokenizers of all models, each made from the content of its file, and the joining of two tokenised documents.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "models/tokenizer/tokenizer.h"

namespace longshort::models {

// --- models trained with fairseq: bytes (enwik8) or characters (text8) ---

// Parses vocabulary.txt for a model with `vocabulary_size` embedding rows. `text` is its content, and `name` its name
// in errors.
//
// Unit::kByte: a symbol is the decimal number of a byte. Unit::kCharacter: a symbol is one UTF-8 character, and "_"
// stands for the space, so that text with a literal "_" cannot be encoded. The newline has id 2, so vocabularies must
// not contain it. Made-up words have ids but no text. Neither have the ids from 4 + lines to `vocabulary_size` - 1,
// which some vocabularies omit.
//
// Errors: INVALID_ARGUMENT naming the file and the line, or both sizes if there are more symbols than embedding rows.
absl::StatusOr<std::unique_ptr<Tokenizer>> LoadFairseqTokenizer(Tokenizer::Unit unit, std::string_view text,
                                                                const std::string& name, int64_t vocabulary_size);

// --- the byte-level BPE of RoBERTa and GPT-2, exact to Hugging Face's package `tokenizers` ---
//
// Text that is not UTF-8 is read as Python reads it with errors="replace": U+FFFD stands for each maximal part of a
// character. Added tokens (</s>, <mask>) are found in the text. The rest is split into words, whose bytes are merged.
// A document's ids begin with <s> and end with </s>.

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

// Two sequences of RoBERTa are joined to one: <s> A </s></s> B </s>.

// How many ids two complete sequences, <s> A </s> and <s> B </s>, keep of their `first` and `second` ids if both may
// have `limit` together. A and B lose ids at their ends by Hugging Face's rule longest_first: the longer one until both
// are equally long, then both; of an odd number, B keeps one more unless A was longer. The first and last id of both
// sequences stay.
// REQUIRES: as for JoinPair.
std::pair<int64_t, int64_t> KeptOfPair(int64_t first, int64_t second, int64_t limit);

// Joins two such sequences to one of at most `limit` ids, of which they keep KeptOfPair: the second's first id becomes
// `separator_id`.
//
// The sequences may be beginnings, as of EncodeBeginning with a limit of at least `limit`. `tokens` of the result is
// the number of ids without a limit.
// REQUIRES: each sequence has at least 2 ids, and `limit` is at least 4.
DocumentBeginning JoinPair(const DocumentBeginning& first, const DocumentBeginning& second, int32_t separator_id,
                           int64_t limit);

// --- Long Range Arena's tokenizers of documents. Id 0 is padding. ---

// Each byte is a token whose id is the byte plus 1. Accepts any text, well-formed or not.
std::unique_ptr<TextEncoder> MakeBytesPlusOneTokenizer();

// Tokenizers of ListOps expressions such as "( ( [MAX 4 ) 3 ) ]". The official code does not store the meaning of ids,
// so a model needs vocabulary.txt, with one symbol per line. The symbol on line n (from 1) has id n. An unknown word
// has the id after the last symbol's.

// The rules that split an expression into words.
enum class ListOpsRules {
  k2020,  // words are runs of letters, digits and "_" (ASCII, and any other character beyond it): "[MAX" is "MAX"
  k2021,  // words are separated by white space; "]" is "X", round brackets are removed: "[MAX" is "[MAX"
};

// Parses vocabulary.txt. `text` is its content, and `name` its name in errors. The model has `vocabulary_size`
// embedding rows; all ids, including 0 and that of unknown words, must be less than that. Errors: INVALID_ARGUMENT
// naming the file and a line that is empty, contains white space or repeats a symbol; or both sizes if there are too
// many symbols or none.
absl::StatusOr<std::unique_ptr<TextEncoder>> LoadListOpsTokenizer(ListOpsRules rules, std::string_view text,
                                                                  const std::string& name, int64_t vocabulary_size);

// --- vocabulary.txt: fairseq's dict.txt, one "symbol count" per line. The symbol on line n (from 0) has id 4 + n. ---

// Returns the symbols in the order of their ids, from id 4 on. They point into `text`. `name` is the file's name in
// errors.
// Errors: INVALID_ARGUMENT naming the file and a line (from 1) that is not "symbol count", repeats a symbol, or
// contains #fairseq:overwrite.
absl::StatusOr<std::vector<std::string_view>> ParseVocabulary(std::string_view text, const std::string& name);

// Quotes a symbol or line for an error message: in single quotes, escaped, cut at 60 bytes.
std::string QuoteSymbol(std::string_view symbol);

// Whether fairseq added this symbol to round the size of the vocabulary: "madeupword0000".
bool IsMadeUpWord(std::string_view symbol);

}  // namespace longshort::models
