// Where the program reads and writes: the real terminal, or strings in a test.
#pragma once

#include <istream>
#include <ostream>

namespace longshort {

struct Terminal {
  std::istream& input;
  // Results only, so that they can be piped.
  std::ostream& output;
  // Errors, progress, summaries.
  std::ostream& error;
  // Whether a person types the input, and reads what goes to `error` and to `output`.
  bool input_is_terminal = false;
  bool error_is_terminal = false;
  bool output_is_terminal = false;
};

}  // namespace longshort
