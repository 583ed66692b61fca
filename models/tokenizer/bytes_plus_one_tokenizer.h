// Long Range Arena's tokens of documents: every byte is one, its id is the byte plus 1. Id 0 is left for padding.
#pragma once

#include <memory>

#include "models/classifier.h"

namespace longshort {

// Takes any text, well-formed or not.
std::unique_ptr<DocumentTokenizer> MakeBytesPlusOneTokenizer();

}  // namespace longshort
