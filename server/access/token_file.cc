#include "server/access/token_file.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "server/calls/call_names.h"

namespace longshort::server {
namespace {

// About a hundred thousand lines.
constexpr size_t kMaxFileBytes = size_t{16} << 20;
constexpr double kMinRate = 0.001;
constexpr double kMaxRate = 1e9;
constexpr size_t kDigestHexDigits = 64;
constexpr size_t kMaxCertificateNameBytes = 2048;

struct Field {
  std::string name;
  std::string value;
};

// Removes the next word from the line; only quotes may contain blanks. Errors: a quote that does not end with its
// word.
absl::StatusOr<std::string> TakeWord(std::string_view* line) {
  std::string word;
  bool quoted = false;
  size_t i = 0;
  for (; i < line->size() && (quoted || !absl::ascii_isspace((*line)[i])); ++i) {
    const char c = (*line)[i];
    if (c == '"' && quoted && word.back() != '\\') {
      if (i + 1 < line->size() && !absl::ascii_isspace((*line)[i + 1])) {
        return absl::InvalidArgumentError("a closing quote must be at the end of a field");
      }
      quoted = false;
      continue;
    }
    if (c == '"' && !quoted) {
      if (word.empty() || word.back() != '=') {
        return absl::InvalidArgumentError("an opening quote must follow the = of a field");
      }
      quoted = true;
      continue;
    }
    if (!absl::ascii_isprint(static_cast<unsigned char>(c))) {
      return absl::InvalidArgumentError("a character is not printable ASCII");
    }
    word += c;
  }
  if (quoted) return absl::InvalidArgumentError("a quote is not closed");
  line->remove_prefix(i);
  return word;
}

// The words of a line. Errors: as TakeWord.
absl::StatusOr<std::vector<std::string>> WordsOf(std::string_view line) {
  std::vector<std::string> words;
  for (;;) {
    while (!line.empty() && absl::ascii_isspace(line.front())) line.remove_prefix(1);
    if (line.empty()) return words;
    LS_ASSIGN_OR_RETURN(std::string word, TakeWord(&line));
    words.push_back(std::move(word));
  }
}

absl::Status ReadRate(const Field& field, double* rate) {
  if (absl::SimpleAtod(field.value, rate) && *rate >= kMinRate && *rate <= kMaxRate) return absl::OkStatus();
  return FieldError(field.name, Quoted(field.value), "a number in [0.001, 1e9] (omit the field for no limit)");
}

absl::Status ReadExpiry(const Field& field, absl::Time* expires) {
  // A digit must be first: absl accepts "infinite-future".
  const bool digit = !field.value.empty() && absl::ascii_isdigit(field.value.front());
  for (const char* format : {"%Y-%m-%d", absl::RFC3339_full}) {
    if (digit && absl::ParseTime(format, field.value, absl::UTCTimeZone(), expires, nullptr)) return absl::OkStatus();
  }
  return FieldError(field.name, Quoted(field.value),
                    "a day such as 2027-01-31, or a time such as 2027-01-31T12:00:00Z");
}

// The message does not contain the value, which may be the token itself.
absl::Status ReadDigest(const Field& field, std::string* digest) {
  const bool hex = std::all_of(field.value.begin(), field.value.end(), absl::ascii_isxdigit);
  if (!hex || field.value.size() != kDigestHexDigits) {
    return FieldError(field.name, absl::StrCat("of ", field.value.size(), " characters"),
                      "64 hex digits, the SHA-256 of the token, as `longshort token new` prints them");
  }
  *digest = absl::HexStringToBytes(field.value);
  return absl::OkStatus();
}

absl::Status ReadCertificateName(const Field& field, const char* beginning, std::string* name) {
  *name = field.value;
  if (field.value.size() <= kMaxCertificateNameBytes && field.value.size() > std::strlen(beginning) &&
      field.value.starts_with(beginning)) {
    return absl::OkStatus();
  }
  return FieldError(field.name, Quoted(field.value),
                    absl::StrCat("1 to ", kMaxCertificateNameBytes, " bytes",
                                 *beginning == '\0' ? "" : absl::StrCat(" that begin with ", beginning)));
}

absl::Status ReadPriority(const Field& field, core::Priority* priority) {
  if (field.value == "high") return *priority = core::Priority::kHigh, absl::OkStatus();
  if (field.value == "normal") return *priority = core::Priority::kNormal, absl::OkStatus();
  return FieldError(field.name, Quoted(field.value), "high or normal");
}

absl::Status ReadField(const Field& field, AccessEntry* entry) {
  if (field.name == "token-sha256") {
    entry->kind = CredentialKind::kToken;
    return ReadDigest(field, &entry->credential);
  }
  if (field.name == "spiffe-id") {
    entry->kind = CredentialKind::kSpiffeId;
    return ReadCertificateName(field, "spiffe://", &entry->credential);
  }
  if (field.name == "certificate-subject") {
    entry->kind = CredentialKind::kCertificateSubject;
    return ReadCertificateName(field, "", &entry->credential);
  }
  if (field.name == "scopes") return ReadScopes(field.value, &entry->scopes);
  if (field.name == "models") return ModelPatterns::Read(field.value, &entry->models);
  if (field.name == "priority") return ReadPriority(field, &entry->max_priority);
  if (field.name == "calls-per-second") return ReadRate(field, &entry->limits.calls_per_second);
  if (field.name == "tokens-per-second") return ReadRate(field, &entry->limits.tokens_per_second);
  if (field.name == "expires") return ReadExpiry(field, &entry->expires);
  return absl::InvalidArgumentError(
      absl::StrCat("there is no field ", Quoted(field.name),
                   "; it must be token-sha256, spiffe-id, certificate-subject, scopes, models, priority, "
                   "calls-per-second, tokens-per-second or expires"));
}

// `words` has at least one.
absl::StatusOr<AccessEntry> ReadEntry(const std::vector<std::string>& words) {
  AccessEntry entry;
  entry.name = words.front();
  if (!IsName(entry.name)) return FieldError("the identity's name", Quoted(entry.name), kNameRule);
  std::set<std::string> seen;
  for (size_t i = 1; i < words.size(); ++i) {
    const size_t equals = words[i].find('=');
    if (equals == std::string::npos) {
      return absl::InvalidArgumentError(absl::StrCat("word ", i + 1, " is not a field; it must be name=value"));
    }
    const Field field = {.name = words[i].substr(0, equals), .value = words[i].substr(equals + 1)};
    if (!seen.insert(field.name).second) {
      return absl::InvalidArgumentError(absl::StrCat(field.name, " is given twice; it must be given once"));
    }
    LS_RETURN_IF_ERROR(ReadField(field, &entry));
  }
  const size_t credentials = seen.count("token-sha256") + seen.count("spiffe-id") + seen.count("certificate-subject");
  if (credentials != 1) {
    return FieldError("the number of credentials", credentials,
                      "1: one of token-sha256, spiffe-id and certificate-subject");
  }
  if (entry.scopes.empty())
    return absl::InvalidArgumentError(absl::StrCat("scopes is missing; it must be ", kScopesRule));
  return entry;
}

// Checks that a line does not contradict earlier lines.
class EarlierLines final {
 public:
  absl::Status Check(const AccessEntry& entry, int64_t line) {
    const auto [same, is_new] = credentials_.try_emplace({entry.kind, entry.credential}, line);
    if (!is_new) {
      return absl::InvalidArgumentError(
          absl::StrCat("the credential is also in line ", same->second, "; each credential must have one line"));
    }
    const auto [identity, is_first] = limits_.try_emplace(entry.name, Limits{entry.limits, line});
    if (is_first || identity->second.limits == entry.limits) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("the limits of ", entry.name, " differ from those in line ",
                                                   identity->second.line,
                                                   "; all lines of an identity must have the same limits"));
  }

 private:
  struct Limits {
    IdentityLimits limits;
    int64_t line = 0;
  };
  std::map<std::pair<CredentialKind, std::string>, int64_t> credentials_;
  std::map<std::string, Limits> limits_;
};

}  // namespace

absl::StatusOr<std::vector<AccessEntry>> ParseTokenFile(std::string_view text, const std::string& path) {
  std::vector<AccessEntry> entries;
  EarlierLines earlier;
  int64_t number = 0;
  for (const absl::string_view line : absl::StrSplit(absl::string_view(text.data(), text.size()), '\n')) {
    ++number;
    const absl::string_view content = absl::StripAsciiWhitespace(line);
    if (content.empty() || content.front() == '#') continue;
    absl::StatusOr<std::vector<std::string>> words = WordsOf(std::string_view(content.data(), content.size()));
    absl::StatusOr<AccessEntry> entry = words.ok() ? ReadEntry(*words) : words.status();
    absl::Status status = entry.status();
    if (status.ok()) status = earlier.Check(*entry, number);
    if (!status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("--token-file=", path, ", line ", number, ": ", status.message()));
    }
    entries.push_back(*std::move(entry));
  }
  if (!entries.empty()) return entries;
  return absl::InvalidArgumentError(
      absl::StrCat("--token-file=", path, " has no entries; it must have a line for each token (longshort token new)"));
}

absl::StatusOr<std::string> ReadTokenFile(const std::string& path) {
  return ReadSecretFile("--token-file", path, kMaxFileBytes);
}

}  // namespace longshort::server
