// The classes of an image or document, for people.
#pragma once

#include <string>

#include "clients/cpp/terminal.h"
#include "longshort/v1/inference.pb.h"

namespace longshort {

// "tabby cat"; "class 281" for a model without labels.
std::string ClassName(const v1::ClassProbability& entry);

// A heading, then a class a row, likeliest first, with a bar if a person reads it; then the logits if there are any:
//   photos/chelsea.png
//     tabby cat    93.10 %  ██████████████████▌
//     tiger cat     4.25 %  ▊
//     logits by class: -0.1234 2.5000 ...
void WriteClassTable(const std::string& heading, const v1::Classification& classification, Terminal& terminal);

}  // namespace longshort
