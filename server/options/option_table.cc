#include "server/options/option_table.h"

#include <algorithm>
#include <fstream>
#include <numeric>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "models/status_macros.h"

namespace longshort {
namespace {

constexpr int kMaxFileDepth = 8;
constexpr size_t kHelpColumns = 100;
constexpr char kFileOption[] = "flagfile";

// Levenshtein's: how many letters to change, add or drop.
size_t EditDistance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({replaced, row[j] + 1, row[j - 1] + 1}));
    }
  }
  return row[b.size()];
}

std::string Wrapped(const std::string& text, const std::string& indent) {
  std::string lines, line = indent;
  for (const absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    if (line.size() + word.size() + 1 > kHelpColumns) {
      absl::StrAppend(&lines, line, "\n");
      line = indent;
    }
    absl::StrAppend(&line, line.size() > indent.size() ? " " : "", word);
  }
  return absl::StrCat(lines, line, "\n");
}

absl::Status At(const std::string& place, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(place, ": ", status.message()));
}

}  // namespace

void OptionTable::AddCustom(std::string name, std::string hint, std::string default_text, std::string help,
                            Reader reader) {
  options_.push_back({.name = std::move(name),
                      .hint = std::move(hint),
                      .default_text = std::move(default_text),
                      .help = std::move(help),
                      .is_switch = false,
                      .reader = std::move(reader)});
}

void OptionTable::AddText(std::string name, std::string hint, std::string help, std::string* value) {
  AddCustom(std::move(name), std::move(hint), *value, std::move(help), [value](const std::string& text) {
    *value = text;
    return absl::OkStatus();
  });
}

void OptionTable::AddNumber(std::string name, std::string hint, std::string help, int64_t* value) {
  AddCustom(std::move(name), std::move(hint), absl::StrCat(*value), std::move(help), [value](const std::string& text) {
    if (absl::SimpleAtoi(text, value)) return absl::OkStatus();
    return absl::InvalidArgumentError("must be a whole number");
  });
}

void OptionTable::AddDuration(std::string name, std::string help, absl::Duration* value) {
  AddCustom(std::move(name), "duration", absl::FormatDuration(*value), std::move(help),
            [value](const std::string& text) {
              if (absl::ParseDuration(text, value)) return absl::OkStatus();
              return absl::InvalidArgumentError("must be a duration with its unit, such as 500ms, 30s or 2m");
            });
}

void OptionTable::AddSwitch(std::string name, std::string help, bool* value) {
  AddCustom(std::move(name), "", *value ? "true" : "false", std::move(help), [value](const std::string& text) {
    if (absl::SimpleAtob(text, value)) return absl::OkStatus();
    return absl::InvalidArgumentError("must be true or false");
  });
  options_.back().is_switch = true;
}

const OptionTable::Option* OptionTable::Find(const std::string& name) const {
  const auto found = std::find_if(options_.begin(), options_.end(), [&](const Option& o) { return o.name == name; });
  return found == options_.end() ? nullptr : &*found;
}

absl::Status OptionTable::UnknownOption(const std::string& name) const {
  std::string message = absl::StrCat("--", name, " is not an option");
  const auto nearer = [&](const Option& a, const Option& b) {
    return EditDistance(a.name, name) < EditDistance(b.name, name);
  };
  const auto nearest = std::min_element(options_.begin(), options_.end(), nearer);
  if (nearest != options_.end() && EditDistance(nearest->name, name) <= 3) {
    absl::StrAppend(&message, "; did you mean --", nearest->name, "?");
  }
  return absl::InvalidArgumentError(message);
}

absl::Status OptionTable::ParseAtDepth(const std::vector<std::string>& arguments, int depth) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument.size() < 3 || argument.compare(0, 2, "--") != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", argument, "' is not an option; options begin with -- (see --help)"));
    }
    const size_t equals = argument.find('=');
    const std::string name = argument.substr(2, equals == std::string::npos ? equals : equals - 2);
    const Option* option = Find(name);
    if (option == nullptr && name != kFileOption) return UnknownOption(name);

    std::string value = "true";
    if (equals != std::string::npos) {
      value = argument.substr(equals + 1);
    } else if (option == nullptr || !option->is_switch) {
      if (++i == arguments.size()) return absl::InvalidArgumentError(absl::StrCat("--", name, " lacks its value"));
      value = arguments[i];
    }
    if (option == nullptr) {
      LS_RETURN_IF_ERROR(ParseFile(value, depth + 1));
    } else if (absl::Status status = option->reader(value); !status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("--", name, " is '", value, "'; it ", status.message()));
    }
  }
  return absl::OkStatus();
}

absl::Status OptionTable::ParseFile(const std::string& path, int depth) {
  if (depth > kMaxFileDepth) {
    return absl::InvalidArgumentError(absl::StrCat("--flagfile ", path, ": files name each other more than 8 deep"));
  }
  std::ifstream file(path);
  if (!file.is_open()) return absl::InvalidArgumentError(absl::StrCat("--flagfile ", path, " cannot be read"));
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    const absl::string_view content = absl::StripAsciiWhitespace(line);
    if (content.empty() || content.front() == '#') continue;
    if (absl::Status status = ParseAtDepth({std::string(content)}, depth); !status.ok()) {
      return At(absl::StrCat(path, ":", number), status);
    }
  }
  if (file.bad()) return absl::InvalidArgumentError(absl::StrCat("--flagfile ", path, " cannot be read to its end"));
  return absl::OkStatus();
}

std::string OptionTable::Help() const {
  std::string text;
  for (const Option& option : options_) {
    absl::StrAppend(&text, "  --", option.name, option.is_switch ? "" : absl::StrCat("=", option.hint));
    if (!option.is_switch) {
      absl::StrAppend(&text,
                      option.default_text.empty() ? "  (no default)" : "  (default: " + option.default_text + ")");
    }
    absl::StrAppend(&text, "\n", Wrapped(option.help, "      "));
  }
  return text;
}

}  // namespace longshort
