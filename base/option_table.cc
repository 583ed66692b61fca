#include "base/option_table.h"

#include <algorithm>
#include <fstream>
#include <numeric>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace longshort {

namespace {

constexpr int kMaxFileDepth = 8;
constexpr size_t kHelpColumns = 100;

// The Levenshtein distance.
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
    if (line.size() > indent.size() && line.size() + 1 + word.size() > kHelpColumns) {
      absl::StrAppend(&lines, line, "\n");
      line = indent;
    }
    absl::StrAppend(&line, line.size() > indent.size() ? " " : "", word);
  }
  return absl::StrCat(lines, line, "\n");
}

absl::Status NoOption(const std::string& argument) {
  return absl::InvalidArgumentError(
      absl::StrCat("'", argument, "' is not an option; options begin with -- (see --help)"));
}

bool BeginsLikeAnOption(const std::string& argument) { return argument.size() > 1 && argument.front() == '-'; }

absl::Status OkIf(bool was_read, absl::string_view rule) {
  return was_read ? absl::OkStatus() : absl::InvalidArgumentError(rule);
}

}  // namespace

absl::Status ReadOptionValue(const std::string& text, std::string* value) {
  *value = text;
  return absl::OkStatus();
}
absl::Status ReadOptionValue(const std::string& text, bool* value) {
  return OkIf(absl::SimpleAtob(text, value), "must be true or false");
}
absl::Status ReadOptionValue(const std::string& text, int32_t* value) {
  return OkIf(absl::SimpleAtoi(text, value), "must be a whole number in [-2^31, 2^31)");
}
absl::Status ReadOptionValue(const std::string& text, int64_t* value) {
  return OkIf(absl::SimpleAtoi(text, value), "must be a whole number in [-2^63, 2^63)");
}
absl::Status ReadOptionValue(const std::string& text, uint64_t* value) {
  return OkIf(absl::SimpleAtoi(text, value), "must be a whole number in [0, 2^64)");
}
absl::Status ReadOptionValue(const std::string& text, double* value) {
  return OkIf(absl::SimpleAtod(text, value), "must be a number");
}
absl::Status ReadOptionValue(const std::string& text, absl::Duration* value) {
  return OkIf(absl::ParseDuration(text, value), "must be a duration with its unit, such as 500ms, 30s or 2m");
}

std::string OptionValueText(const std::string& value) { return value; }
std::string OptionValueText(int32_t value) { return absl::StrCat(value); }
std::string OptionValueText(int64_t value) { return absl::StrCat(value); }
std::string OptionValueText(uint64_t value) { return absl::StrCat(value); }
std::string OptionValueText(double value) { return absl::StrCat(value); }
std::string OptionValueText(absl::Duration value) { return absl::FormatDuration(value); }

const OptionTable::Option& OptionTable::FlagFile() {
  static const Option& option = *new Option{
      .section = "",
      .name = "flagfile",
      .hint = "FILE",
      .default_text = "",
      .help =
          "Read options from FILE, one --name=value per line. Lines that begin with # are comments. Later options win.",
      .reader = nullptr};
  return option;
}

void OptionTable::Add(Option option) {
  option.section = std::exchange(next_section_, "");
  option.is_common = is_common_;
  options_.push_back(std::move(option));
}

void OptionTable::AddCustom(std::string name, std::string hint, std::string default_text, std::string help,
                            Reader reader) {
  Add({.name = std::move(name),
       .hint = std::move(hint),
       .default_text = std::move(default_text),
       .help = std::move(help),
       .reader = std::move(reader)});
}

void OptionTable::AddHelp(HelpForm* form, HelpForm other) {
  const bool is_all = other == HelpForm::kAll;
  const std::string word = is_all ? "all" : "markdown";
  const std::string what = is_all ? "adds the options of every command." : "prints the tables of the docs.";
  AddCustom("help", "", "", absl::StrCat("Print this and exit. --help=", word, " ", what),
            [form, other, word](const std::string& text) {
              bool on = text == word;
              const absl::Status status = on ? absl::OkStatus() : ReadOptionValue(text, &on);
              if (!status.ok()) return absl::InvalidArgumentError(absl::StrCat("must be absent or ", word));
              *form = text == word ? other : on ? HelpForm::kText : HelpForm::kNone;
              return absl::OkStatus();
            });
}

std::string OptionTable::Joined(const std::vector<std::string>& words) { return absl::StrJoin(words, "|"); }

absl::Status OptionTable::NoneOf(const std::vector<std::string>& words) {
  const absl::Span<const std::string> all = words;
  return absl::InvalidArgumentError(
      absl::StrCat("must be ", absl::StrJoin(all.subspan(0, all.size() - 1), ", "), " or ", words.back()));
}

const OptionTable::Option* OptionTable::Find(const std::string& name) const {
  if (name == FlagFile().name) return &FlagFile();
  const auto found = std::find_if(options_.begin(), options_.end(), [&](const Option& o) { return o.name == name; });
  return found == options_.end() ? nullptr : &*found;
}

absl::Status OptionTable::UnknownOption(const std::string& name) const {
  std::string message = absl::StrCat("--", name, " is not an option");
  if (const auto other = other_names_.find(name); other != other_names_.end()) {
    return absl::InvalidArgumentError(absl::StrCat(message, "; did you mean ", other->second, "?"));
  }
  const auto nearer = [&](const Option& a, const Option& b) {
    return EditDistance(a.name, name) < EditDistance(b.name, name);
  };
  const auto nearest = std::min_element(options_.begin(), options_.end(), nearer);
  // The distance between short names is always small, so the limit depends on the length.
  const size_t near = std::min<size_t>(3, name.size() / 2);
  if (nearest != options_.end() && EditDistance(nearest->name, name) <= near) {
    absl::StrAppend(&message, "; did you mean --", nearest->name, "?");
  }
  return absl::InvalidArgumentError(message);
}

absl::Status OptionTable::Parse(absl::Span<const std::string> arguments) const {
  const absl::StatusOr<std::vector<std::string>> others = ParseAmongOthers(arguments);
  if (!others.ok()) return others.status();
  return others->empty() ? absl::OkStatus() : NoOption(others->front());
}

absl::StatusOr<std::vector<std::string>> OptionTable::ParseAmongOthers(absl::Span<const std::string> arguments) const {
  std::vector<std::string> others;
  for (size_t next = 0; next < arguments.size();) {
    if (arguments[next] == "--") {
      others.insert(others.end(), arguments.begin() + next + 1, arguments.end());
      break;
    }
    if (!BeginsLikeAnOption(arguments[next])) {
      others.push_back(arguments[next++]);
    } else if (absl::Status status = ParseOption(arguments, &next, 0); !status.ok()) {
      return status;
    }
  }
  return others;
}

absl::StatusOr<std::vector<std::string>> OptionTable::ParseLeading(absl::Span<const std::string> arguments) const {
  size_t next = 0;
  while (next < arguments.size() && BeginsLikeAnOption(arguments[next])) {
    if (absl::Status status = ParseOption(arguments, &next, 0); !status.ok()) return status;
  }
  return std::vector<std::string>(arguments.begin() + next, arguments.end());
}

absl::Status OptionTable::ParseOption(absl::Span<const std::string> arguments, size_t* next, int depth) const {
  const std::string& argument = arguments[(*next)++];
  if (argument.size() < 3 || !absl::StartsWith(argument, "--")) return NoOption(argument);
  const size_t equals = argument.find('=');
  const std::string name = argument.substr(2, equals == std::string::npos ? equals : equals - 2);
  const Option* option = Find(name);
  if (option == nullptr) return UnknownOption(name);

  std::string value = "true";
  if (equals != std::string::npos) {
    value = argument.substr(equals + 1);
  } else if (!option->hint.empty()) {
    if (*next == arguments.size()) {
      return absl::InvalidArgumentError(absl::StrCat("--", name, " needs a value: --", name, "=", option->hint));
    }
    value = arguments[(*next)++];
  }
  if (option == &FlagFile()) return ParseFile(value, depth + 1);
  absl::Status status = option->reader(value);
  if (status.ok()) return status;
  return absl::InvalidArgumentError(absl::StrCat("--", name, " is '", value, "'; it ", status.message()));
}

absl::Status OptionTable::ParseFile(const std::string& path, int depth) const {
  if (depth > kMaxFileDepth) {
    return absl::InvalidArgumentError(absl::StrCat("--flagfile ", path, ": files are nested more than 8 deep"));
  }
  std::ifstream file(path);
  if (!file.is_open()) return absl::InvalidArgumentError(absl::StrCat("--flagfile ", path, " cannot be read"));
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    const std::string content(absl::StripAsciiWhitespace(line));
    if (content.empty() || content.front() == '#') continue;
    size_t next = 0;
    if (absl::Status status = ParseOption({content}, &next, depth); !status.ok()) {
      return absl::Status(status.code(), absl::StrCat(path, ":", number, ": ", status.message()));
    }
  }
  if (file.bad()) return absl::InvalidArgumentError(absl::StrCat("--flagfile ", path, " cannot be read to its end"));
  return absl::OkStatus();
}

std::string OptionTable::HelpOf(const Option& option) {
  std::string notes = option.default_text.empty() ? "no default" : absl::StrCat("default: ", option.default_text);
  if (!option.range.empty()) absl::StrAppend(&notes, "; ", option.range);
  return absl::StrCat("  --", option.name, option.hint.empty() ? "" : absl::StrCat("=", option.hint, "  (", notes, ")"),
                      "\n", Wrapped(option.help, "      "));
}

std::string OptionTable::Help(HelpForm form) const {
  std::string text;
  bool has_all = true;
  for (const Option& option : options_) {
    if (option.is_common && form != HelpForm::kAll) {
      has_all = false;
      continue;
    }
    if (!option.section.empty()) absl::StrAppend(&text, text.empty() ? "" : "\n", option.section, "\n");
    absl::StrAppend(&text, HelpOf(option));
  }
  return has_all ? absl::StrCat(text, HelpOf(FlagFile())) : text;
}

std::string OptionTable::Markdown(const Shown& shown) const {
  const auto cell = [](const std::string& text) { return absl::StrReplaceAll(text, {{"|", "\\|"}}); };
  const auto row = [&](const Option& option) {
    const std::string name =
        shown != nullptr ? shown(option) : absl::StrCat("--", option.name, option.hint.empty() ? "" : "=", option.hint);
    const std::string default_text = option.default_text.empty() ? "" : absl::StrCat("`", option.default_text, "`");
    return absl::StrCat("| `", cell(name), "` | ", cell(default_text), " | ", option.range, " | ",
                        absl::StrReplaceAll(cell(option.help), {{"<", "&lt;"}}), " |\n");
  };
  std::string text;
  for (const Option& option : options_) {
    if (!option.section.empty() || text.empty()) {
      const std::string title = std::string(absl::StripSuffix(option.section, ":"));
      absl::StrAppend(&text, text.empty() ? "" : "\n", title.empty() ? "" : absl::StrCat("## ", title, "\n\n"),
                      "| option | default | range | meaning |\n|---|---|---|---|\n");
    }
    absl::StrAppend(&text, row(option));
  }
  return shown != nullptr ? text : absl::StrCat(text, row(FlagFile()));
}

}  // namespace longshort
