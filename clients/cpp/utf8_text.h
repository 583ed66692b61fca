// Bytes that may be UTF-8, such as names of files and labels of classes, as text.
#pragma once

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace longshort {

// The same with U+FFFD for every byte that is not part of a UTF-8 character.
std::string ValidUtf8(absl::string_view bytes);

// How many characters there are: about as many columns as the text takes at a terminal.
size_t CountCharacters(absl::string_view text);

}  // namespace longshort
