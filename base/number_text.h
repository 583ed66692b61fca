// Numbers in messages and in clients' texts.
#pragma once

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

namespace longshort {

// The shortest text that parses to the same number, so that an error does not print 1.0000001 as 1.
template <typename Number>
std::string NumberText(Number value) {
  std::array<char, 32> text;
  return {text.data(), std::to_chars(text.begin(), text.end(), value).ptr};
}

// The whole number that JSON writes as 16.0 or 4e0. nullopt: it has a fraction, or is beyond 2^53, where a float64
// stands for several whole numbers.
inline std::optional<int64_t> IntegerOf(double number) {
  constexpr double kMax = 9007199254740992;
  if (!(std::abs(number) <= kMax) || number != std::trunc(number)) return std::nullopt;
  return static_cast<int64_t>(number);
}

}  // namespace longshort
