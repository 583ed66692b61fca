// Log-probabilities for people.
#pragma once

#include <string>

#include "longshort/v1/types.pb.h"

namespace longshort {

// One token a line, with a newline: log-probability, id, text; then its alternatives the same way on indented lines.
//   -0.1053    101  "e"
//       -0.1053    101  "e"
//       -2.3026     97  "a"
std::string TokenLine(const v1::TokenLogProbability& token);

// The bytes in quotes, with what cannot be printed as escapes.
std::string QuoteBytes(const std::string& bytes);

}  // namespace longshort
