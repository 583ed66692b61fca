#include "tools/load/workload.h"

#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/option_table.h"
#include "base/status_macros.h"

namespace longshort::load {
namespace {

constexpr int64_t kMaxTokens = int64_t{1} << 30;
constexpr int64_t kMaxCallers = 65536;
constexpr int64_t kMaxImageSide = 8192;
constexpr int64_t kMaxRequests = int64_t{1} << 40;

// Parses "N" or "MIN:MAX".
absl::Status ReadNumbers(const std::string& text, const OptionRange<int64_t>& allowed, Range* range) {
  const std::pair<std::string, std::string> ends = absl::StrSplit(text, absl::MaxSplits(':', 1));
  LS_RETURN_IF_ERROR(ReadOptionValue(ends.first, &range->min));
  LS_RETURN_IF_ERROR(ReadOptionValue(ends.second.empty() ? ends.first : ends.second, &range->max));
  LS_RETURN_IF_ERROR(allowed.Check(range->min));
  LS_RETURN_IF_ERROR(allowed.Check(range->max));
  if (range->min <= range->max) return absl::OkStatus();
  return absl::InvalidArgumentError("must be N or MIN:MAX, where MIN is at most MAX");
}

// Returns the keys that follow the word for the RPC.
OptionTable KeysOf(Workload& to) {
  OptionTable keys;
  const auto add_range = [&keys](const char* name, const char* hint, const char* help,
                                 const OptionRange<int64_t>& allowed, Range* range) {
    keys.AddCustom(name, hint, "", help,
                   [allowed, range](const std::string& text) { return ReadNumbers(text, allowed, range); });
  };
  keys.Add("name", "TEXT", "name in the report; default: generate, score or classify", &to.name);
  keys.Add("model", "NAME", "name of the model; default: the server's only one", &to.model);
  keys.AddCustom("protocol", "NAME", "", "longshort (default), or open_inference (scores text, classifies pixels)",
                 [&to](const std::string& text) {
                   to.open_inference = text == "open_inference";
                   if (to.open_inference || text == "longshort") return absl::OkStatus();
                   return absl::InvalidArgumentError("must be longshort or open_inference");
                 });
  keys.Add("rate", "R", "open loop: R requests per second, as a Poisson process", &to.rate, {1e-6, 1e6});
  keys.Add("concurrency", "N", "closed loop: N callers, each with one call in flight; default 1", &to.concurrency,
           {1, kMaxCallers});
  keys.Add("requests", "N", "maximum number of requests; default 0: no limit but --seconds", &to.requests,
           {0, kMaxRequests});
  add_range("prompt", "N|N:N",
            "tokens of a prompt or document, or a range; default 64; with classify: sends text instead of images",
            {1, kMaxTokens}, &to.prompt);
  add_range("tokens", "N|N:N", "tokens to generate, or a range; default 16", {1, kMaxTokens}, &to.tokens);
  keys.Add("shared", "N", "number of tokens at the start of a prompt that requests share; default 0", &to.shared,
           {0, kMaxTokens});
  keys.Add("prefix", "K", "which shared prefix to use: the same K gives the same prefix in every run; default 0",
           &to.prefix, {0, kMaxRequests});
  keys.Add("prefixes", "N", "requests use N shared prefixes, K to K+N-1, in turn; default 1", &to.prefixes,
           {1, kMaxRequests});
  add_range("ids", "A:B", "prompts are token ids from A to B; default: lower-case text, one byte per token",
            {0, std::numeric_limits<int32_t>::max()}, &to.ids);
  keys.Add("documents", "N", "2: the document with a second one, for classifiers of two; default 1", &to.documents,
           {1, 2});
  keys.Add("image_side", "N", "images of N x N random pixels, sent as pixels; default 224", &to.image_side,
           {1, kMaxImageSide});
  keys.Add("image", "FILE", "image file to send instead of random pixels", &to.image_file);
  keys.Add("deadline", "TIME", "deadline of each call, for example 500ms; default: none", &to.deadline,
           {absl::Milliseconds(1), absl::InfiniteDuration()});
  return keys;
}

absl::Status ReadKey(const std::string& text, Workload& workload) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits('=', 1));
  const OptionTable keys = KeysOf(workload);
  for (const OptionTable::Option& key : keys.options()) {
    if (key.name != parts.first) continue;
    absl::Status status = key.reader(parts.second);
    if (status.ok()) return status;
    return absl::InvalidArgumentError(
        absl::StrCat("has ", parts.first, "='", parts.second, "', which ", status.message()));
  }
  return absl::InvalidArgumentError(absl::StrCat("has the unknown key '", parts.first, "'; --help lists them"));
}

absl::StatusOr<Rpc> ParseRpc(absl::string_view word) {
  if (word == "generate") return Rpc::kGenerateStream;
  if (word == "score") return Rpc::kScoreText;
  if (word == "classify") return Rpc::kClassifyImage;
  return absl::InvalidArgumentError(absl::StrCat("must begin with generate, score or classify, not '", word, "'"));
}

}  // namespace

const char* NameOf(Rpc rpc) {
  switch (rpc) {
    case Rpc::kGenerateStream:
      return "GenerateStream";
    case Rpc::kScoreText:
      return "ScoreText";
    case Rpc::kClassifyImage:
      return "ClassifyImage";
  }
  return "";
}

absl::StatusOr<Workload> ParseWorkload(const std::string& text) {
  Workload workload;
  const std::vector<std::string> parts = absl::StrSplit(text, ',');
  LS_ASSIGN_OR_RETURN(workload.rpc, ParseRpc(parts.front()));
  workload.name = parts.front();
  bool has_prompt = false;
  bool has_image = false;
  for (size_t i = 1; i < parts.size(); ++i) {
    LS_RETURN_IF_ERROR(ReadKey(parts[i], workload));
    has_prompt = has_prompt || absl::StartsWith(parts[i], "prompt=");
    has_image = has_image || absl::StartsWith(parts[i], "image");
  }
  if (workload.rpc == Rpc::kClassifyImage && has_prompt) {
    if (has_image) return absl::InvalidArgumentError("has both prompt= and an image: classify takes texts or images");
    workload.rpc = Rpc::kScoreText;  // also the RPC of text classifiers
  }
  const bool pixels_or_text = workload.rpc == Rpc::kClassifyImage
                                  ? workload.image_file.empty()
                                  : workload.rpc == Rpc::kScoreText && workload.ids.max == 0;
  if (workload.documents == 2 && (workload.rpc != Rpc::kScoreText || workload.open_inference)) {
    return absl::InvalidArgumentError("has documents=2, which only classify with prompt= supports, by longshort.v1");
  }
  if (workload.open_inference && !pixels_or_text) {
    return absl::InvalidArgumentError(
        "has protocol=open_inference, which supports only score with text and classify with pixels");
  }
  if (workload.shared > workload.prompt.min) {
    return absl::InvalidArgumentError(absl::StrCat(
        "has shared=", workload.shared, ", which must be at most the prompt's tokens, ", workload.prompt.min));
  }
  return workload;
}

std::string WorkloadHelp() {
  Workload any;
  const OptionTable keys = KeysOf(any);
  std::string help = "A workload is generate, score or classify, then any of these keys, separated by commas:\n";
  for (const OptionTable::Option& key : keys.options()) {
    absl::StrAppendFormat(&help, "  %-18s  %s\n", absl::StrCat(key.name, "=", key.hint), key.help);
  }
  return help;
}

}  // namespace longshort::load
