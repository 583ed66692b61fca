// Two sequences of RoBERTa joined to one: <s> A </s></s> B </s>.
#pragma once

#include <cstdint>
#include <utility>

#include "models/tokenizer/tokenizer.h"

namespace longshort::models {

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

}  // namespace longshort::models
