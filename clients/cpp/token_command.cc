// `longshort token new`: creates a bearer token, and its line for the server's token file. Works offline.
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/sha256.h"
#include "base/status_macros.h"
#include "clients/cpp/command.h"

namespace longshort::client {
namespace {

// Lets people and secret scanners recognise a token.
constexpr char kTokenPrefix[] = "ls_";
constexpr size_t kSecretBytes = 32;

constexpr OptionRange<double> kRates = {0.001, 1e9};

absl::StatusOr<std::string> DrawToken() {
  std::string secret(kSecretBytes, '\0');
  // getrandom never returns fewer bytes for requests up to 256.
  if (getrandom(secret.data(), secret.size(), 0) != static_cast<ssize_t>(secret.size())) {
    return absl::InternalError(absl::ErrnoToStatus(errno, "cannot get random numbers from the system").message());
  }
  return absl::StrCat(kTokenPrefix, absl::WebSafeBase64Escape(secret));
}

// Applies the server's rule (server/access/token_file.h).
bool IsIdentityName(const std::string& name) {
  return !name.empty() && name.size() <= 128 && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == ':' || c == '-';
  });
}

absl::Status ReadScopes(const std::string& text, std::string* scopes) {
  std::set<absl::string_view> seen;
  for (const absl::string_view scope : absl::StrSplit(text, ',')) {
    const bool known = scope == "infer" || scope == "sessions" || scope == "manage" || scope == "observe";
    if (!known || !seen.insert(scope).second) {
      return absl::InvalidArgumentError(
          "must be a comma-separated list of infer, sessions, manage and observe, each at most once");
    }
  }
  *scopes = text;
  return absl::OkStatus();
}

// Accepts model patterns that need no quotes in the token file.
absl::Status ReadModels(const std::string& text, std::string* models) {
  const auto stands = [](unsigned char c) { return absl::ascii_isgraph(c) && c != '"' && c != '\\'; };
  const auto is_name = [&stands](absl::string_view name) {
    const absl::string_view begin = name.substr(0, std::min(name.find('*'), name.size()));
    return !name.empty() && name.size() <= begin.size() + 1 && begin.size() <= 256 &&
           std::all_of(name.begin(), name.end(), stands);
  };
  const std::vector<absl::string_view> names = absl::StrSplit(text, ',');
  if (!std::all_of(names.begin(), names.end(), is_name)) {
    return absl::InvalidArgumentError(
        "must be a comma-separated list of names of 1 to 256 bytes, without blanks or quotes; each may end with *");
  }
  *models = text;
  return absl::OkStatus();
}

// Parses days ("30d") or any absl::Duration ("12h").
absl::Status ReadLifetime(const std::string& text, std::optional<absl::Duration>* lifetime) {
  int64_t days = 0;
  absl::Duration value;
  if (!text.empty() && text.back() == 'd' && absl::SimpleAtoi(text.substr(0, text.size() - 1), &days)) {
    value = absl::Hours(24) * days;
  } else if (!absl::ParseDuration(text, &value)) {
    return absl::InvalidArgumentError("must be a duration, such as 30d or 12h");
  }
  if (value < absl::Seconds(1) || value > absl::Hours(24) * 36500) {
    return absl::InvalidArgumentError("must be in [1s, 36500d]");
  }
  *lifetime = value;
  return absl::OkStatus();
}

class TokenCommand final : public Command {
 public:
  TokenCommand()
      : Command("token", "Create a token that identifies a client to a server",
                R"(Usage: longshort token new NAME [options]

Creates a token for the identity NAME. The command works offline and stores nothing. It prints two lines to standard output:

  1. The token, which is not shown again. Give it to the client, to keep like a password: in a file that only its user can read
     (chmod 600).
  2. The line for the server's --token-file. It contains only the SHA-256 of the token, so it does not grant access. The server
     accepts a new line within two seconds. To revoke a token, remove its line.

Several lines with the same NAME are one identity. To rotate a token, add a line for the new one, give the new token to the
client, then remove the old line. Scopes: infer (use models), sessions (conversations), manage (load and unload models), observe
(reflection, metrics).

Examples:
  longshort token new alice
  longshort token new batch --scopes=infer --models='enwiki,vil-*' --tokens-per-second=5000 --expires=30d
  longshort token new scraper --scopes=observe | { umask 077; read -r token; read -r line
    echo "$token" > scraper.token; echo "$line" >> server.tokens; }
)") {}

  void AddOptions(OptionTable& table) override {
    table.AddCustom("scopes", "LIST", scopes_, "Permissions of the token: infer, sessions, manage, observe.",
                    [this](const std::string& text) { return ReadScopes(text, &scopes_); });
    table.AddCustom("models", "LIST", models_, "Models that it may use: names, or prefixes followed by *.",
                    [this](const std::string& text) { return ReadModels(text, &models_); });
    table.AddChoice<std::string>("priority", {{"normal", "normal"}, {"high", "high"}},
                                 "Highest priority that calls with it may ask for.", &priority_);
    table.Add("calls-per-second", "N",
              "Rate limit of calls of the identity, over all of its tokens; unlimited if not given.",
              &calls_per_second_, kRates);
    table.Add("tokens-per-second", "N", "Rate limit of tokens read and generated; unlimited if not given.",
              &tokens_per_second_, kRates);
    table.AddCustom("expires", "TIME", "never", "Lifetime of the token, such as 30d or 12h.",
                    [this](const std::string& text) { return ReadLifetime(text, &lifetime_); });
  }

  absl::StatusOr<ExitCode> Run(const std::vector<std::string>& arguments, const CommandContext& context) override {
    if (arguments.size() != 2 || arguments[0] != "new") {
      return UsageError("token takes two arguments: new and the identity's NAME");
    }
    const std::string& name = arguments[1];
    if (!IsIdentityName(name)) {
      return UsageError(absl::StrCat("the identity's name is \"", absl::CHexEscape(name),
                                     "\"; it must be 1 to 128 letters, digits or any of \"._:-\""));
    }
    LS_ASSIGN_OR_RETURN(const std::string token, DrawToken());
    LS_ASSIGN_OR_RETURN(const std::string digest, Sha256Of(token));
    const std::string line = Line(name, absl::BytesToHexString(digest));
    if (context.options.json) {
      // Neither string needs JSON escapes.
      context.terminal.output << R"({"token":")" << token << R"(","line":")" << line << "\"}\n";
    } else {
      context.terminal.output << token << "\n" << line << "\n";
    }
    return ExitCode::kOk;
  }

 private:
  std::string Line(const std::string& name, const std::string& digest) const {
    std::string line = absl::StrCat(name, " token-sha256=", digest, " scopes=", scopes_);
    if (models_ != "*") absl::StrAppend(&line, " models=", models_);
    if (priority_ != "normal") absl::StrAppend(&line, " priority=", priority_);
    if (calls_per_second_.has_value()) absl::StrAppend(&line, " calls-per-second=", *calls_per_second_);
    if (tokens_per_second_.has_value()) absl::StrAppend(&line, " tokens-per-second=", *tokens_per_second_);
    if (lifetime_.has_value()) {
      absl::StrAppend(
          &line, " expires=", absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::Now() + *lifetime_, absl::UTCTimeZone()));
    }
    return line;
  }

  std::string scopes_ = "infer,sessions";
  std::string models_ = "*";
  std::string priority_ = "normal";
  std::optional<double> calls_per_second_;
  std::optional<double> tokens_per_second_;
  std::optional<absl::Duration> lifetime_;
};

}  // namespace

std::unique_ptr<Command> MakeTokenCommand() { return std::make_unique<TokenCommand>(); }

}  // namespace longshort::client
