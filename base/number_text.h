// Numbers in messages.
#pragma once

#include <array>
#include <charconv>
#include <string>

namespace longshort {

// The shortest text that parses to the same number, so that an error does not print 1.0000001 as 1.
template <typename Number>
std::string NumberText(Number value) {
  std::array<char, 32> text;
  return {text.data(), std::to_chars(text.begin(), text.end(), value).ptr};
}

}  // namespace longshort
