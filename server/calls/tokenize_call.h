// A text as token ids: what is asked, and what is answered.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "models/tokenizer/tokenizer.h"
#include "server/calls/model_reference.h"
#include "server/calls/text_input.h"

namespace longshort {

struct TokenizeCall {
  ModelReference model = {};
  TextInput text = {};
};

struct TokenizeResult {
  std::vector<int32_t> ids;
  ModelReference model = {};
  // What the ids stand for; null for a classifier, and for a model without vocabulary.
  std::shared_ptr<const Tokenizer> tokenizer;
};

}  // namespace longshort
