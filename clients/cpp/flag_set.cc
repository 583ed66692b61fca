#include "clients/cpp/flag_set.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace longshort {
namespace {

bool IsFlag(absl::string_view argument) { return argument.size() > 1 && argument.front() == '-'; }

}  // namespace

bool ParseFlagValue(absl::string_view text, std::string* value) {
  *value = std::string(text);
  return true;
}

bool ParseFlagValue(absl::string_view text, bool* value) { return absl::SimpleAtob(text, value); }
bool ParseFlagValue(absl::string_view text, int32_t* value) { return absl::SimpleAtoi(text, value); }
bool ParseFlagValue(absl::string_view text, int64_t* value) { return absl::SimpleAtoi(text, value); }
bool ParseFlagValue(absl::string_view text, uint64_t* value) { return absl::SimpleAtoi(text, value); }
bool ParseFlagValue(absl::string_view text, double* value) { return absl::SimpleAtod(text, value); }
bool ParseFlagValue(absl::string_view text, absl::Duration* value) {
  return absl::ParseDuration(text, value) && *value > absl::ZeroDuration();
}

bool ParseFlagValue(absl::string_view text, TokenBias* value) {
  const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(text, absl::MaxSplits(':', 1));
  return absl::SimpleAtoi(parts.first, &value->token) && absl::SimpleAtof(parts.second, &value->bias);
}

absl::Status FlagSet::ParseFlag(absl::Span<const std::string> arguments, size_t* next) const {
  const absl::string_view argument = arguments[(*next)++];
  const size_t equals = argument.find('=');
  const absl::string_view name = absl::StripPrefix(argument.substr(0, equals), "--");
  const auto flag =
      std::find_if(flags_.begin(), flags_.end(), [&](const Flag& candidate) { return candidate.name == name; });
  if (flag == flags_.end())
    return absl::InvalidArgumentError(absl::StrCat("unknown flag ", argument.substr(0, equals)));

  absl::string_view value;
  if (equals != absl::string_view::npos) {
    value = argument.substr(equals + 1);
  } else if (flag->value_name.empty()) {
    value = "true";
  } else if (*next < arguments.size()) {
    value = arguments[(*next)++];
  } else {
    return absl::InvalidArgumentError(absl::StrCat("--", name, " needs a value: --", name, "=", flag->value_name));
  }
  if (!flag->parse(value)) {
    const absl::string_view form = flag->value_name.empty() ? "true or false" : absl::string_view(flag->value_name);
    return absl::InvalidArgumentError(absl::StrCat("--", name, ": \"", value, "\" is not of the form ", form));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> FlagSet::Parse(absl::Span<const std::string> arguments) const {
  std::vector<std::string> others;
  for (size_t next = 0; next < arguments.size();) {
    if (arguments[next] == "--") {
      others.insert(others.end(), arguments.begin() + next + 1, arguments.end());
      break;
    }
    if (!IsFlag(arguments[next])) {
      others.push_back(arguments[next++]);
      continue;
    }
    if (absl::Status status = ParseFlag(arguments, &next); !status.ok()) return status;
  }
  return others;
}

absl::StatusOr<std::vector<std::string>> FlagSet::ParseLeading(absl::Span<const std::string> arguments) const {
  size_t next = 0;
  while (next < arguments.size() && IsFlag(arguments[next])) {
    if (absl::Status status = ParseFlag(arguments, &next); !status.ok()) return status;
  }
  return std::vector<std::string>(arguments.begin() + next, arguments.end());
}

std::string FlagSet::Help() const {
  const auto usage = [](const Flag& flag) {
    return flag.value_name.empty() ? absl::StrCat("--", flag.name)
                                   : absl::StrCat("--", flag.name, "=", flag.value_name);
  };
  size_t width = 0;
  for (const Flag& flag : flags_) width = std::max(width, usage(flag).size());

  std::string help;
  for (const Flag& flag : flags_) {
    std::string left = usage(flag);
    left.resize(width + 2, ' ');
    absl::StrAppend(&help, "  ", left, flag.help, "\n");
  }
  return help;
}

}  // namespace longshort
