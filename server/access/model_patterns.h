// Which models somebody may use.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace longshort {

// Immutable once read.
class ModelPatterns final {
 public:
  // All models.
  ModelPatterns() = default;

  // Names with commas between; a * at the end of one stands for any further characters. Errors: INVALID_ARGUMENT,
  // completing "models is ...".
  static absl::Status Read(std::string_view text, ModelPatterns* patterns);

  bool Allow(std::string_view model) const;
  // Whether there is no model that they do not allow.
  bool AllowAll() const { return all_; }

 private:
  struct Pattern {
    std::string begin;
    bool open = false;  // what follows may be anything
  };

  bool all_ = true;
  std::vector<Pattern> patterns_;
};

}  // namespace longshort
