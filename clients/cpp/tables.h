// Results as a person reads them: tables, classes with their probabilities, tokens.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "clients/cpp/terminal.h"
#include "longshort/v1/inference.pb.h"

namespace longshort {

using TextRow = std::vector<std::string>;

// Columns as wide as their widest cell, two spaces between them; `indent` spaces before each row.
void WriteTable(const std::vector<TextRow>& rows, std::ostream& output, int indent = 0);

// A heading, then a class a row, likeliest first, with a bar if a person reads it; then the logits if there are any.
// A class without a label is "class 281".
//   photos/chelsea.png
//     tabby cat    93.10 %  ██████████████████▌
//     tiger cat     4.25 %  ▊
//     logits by class: -0.1234 2.5000 ...
void WriteClassTable(const std::string& heading, const v1::Classification& classification, Terminal& terminal);

// One token a line, with a newline: log-probability, id, text; then its alternatives the same way on indented lines.
//   -0.1053    101  "e"
//       -0.1053    101  "e"
//       -2.3026     97  "a"
std::string TokenLine(const v1::TokenLogProbability& token);

// The bytes in quotes, with what cannot be printed as escapes.
std::string QuoteBytes(const std::string& bytes);

}  // namespace longshort
