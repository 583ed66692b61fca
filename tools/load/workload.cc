#include "tools/load/workload.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/option_values.h"
#include "base/status_macros.h"

namespace longshort::load {
namespace {

constexpr int64_t kMostTokens = int64_t{1} << 30;
constexpr int64_t kMostCallers = 65536;
constexpr int64_t kMostItems = 64;
constexpr int64_t kMostImageSide = 8192;
constexpr int64_t kMostRequests = int64_t{1} << 40;

using Reader = std::function<absl::Status(const std::string& value)>;

struct Key {
  const char* name;
  const char* help;
  Reader read;
};

Reader Words(std::string* value) {
  return [value](const std::string& text) { return ReadOptionValue(text, value); };
}

Reader Number(int64_t least, int64_t most, int64_t* value) {
  return [=](const std::string& text) -> absl::Status {
    LS_RETURN_IF_ERROR(ReadOptionValue(text, value));
    if (*value >= least && *value <= most) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("must be in [", least, ", ", most, "]"));
  };
}

// "N" or "LEAST:MOST".
Reader Numbers(int64_t least, int64_t most, Range* range) {
  return [=](const std::string& text) -> absl::Status {
    const std::pair<std::string, std::string> ends = absl::StrSplit(text, absl::MaxSplits(':', 1));
    LS_RETURN_IF_ERROR(Number(least, most, &range->least)(ends.first));
    LS_RETURN_IF_ERROR(Number(least, most, &range->most)(ends.second.empty() ? ends.first : ends.second));
    if (range->least <= range->most) return absl::OkStatus();
    return absl::InvalidArgumentError("must be N or LEAST:MOST, rising");
  };
}

absl::Status ReadRate(const std::string& text, double* rate) {
  LS_RETURN_IF_ERROR(ReadOptionValue(text, rate));
  if (*rate > 0 && *rate <= 1e6) return absl::OkStatus();
  return absl::InvalidArgumentError("must be above 0 and at most 1000000");
}

absl::Status ReadDeadline(const std::string& text, absl::Duration* deadline) {
  LS_RETURN_IF_ERROR(ReadOptionValue(text, deadline));
  if (*deadline > absl::ZeroDuration()) return absl::OkStatus();
  return absl::InvalidArgumentError("must be above 0");
}

absl::Status ReadMetadata(const std::string& text, Workload* workload) {
  const std::pair<std::string, std::string> pair = absl::StrSplit(text, absl::MaxSplits(':', 1));
  if (pair.first.empty() || pair.second.empty()) return absl::InvalidArgumentError("must be KEY:VALUE");
  const bool is_key = std::all_of(pair.first.begin(), pair.first.end(), [](char c) {
    return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '-' || c == '_' || c == '.';
  });
  if (!is_key || !std::all_of(pair.second.begin(), pair.second.end(), absl::ascii_isprint)) {
    return absl::InvalidArgumentError("must be KEY:VALUE, of a-z, 0-9, - _ . and of printable ASCII characters");
  }
  workload->metadata_key = pair.first;
  workload->metadata_value = pair.second;
  return absl::OkStatus();
}

absl::Status ReadProtocol(const std::string& text, bool* open_inference) {
  *open_inference = text == "open_inference";
  if (*open_inference || text == "longshort") return absl::OkStatus();
  return absl::InvalidArgumentError("must be longshort or open_inference");
}

std::vector<Key> KeysOf(Workload& to) {
  const auto rate = [&to](const std::string& text) { return ReadRate(text, &to.rate); };
  const auto protocol = [&to](const std::string& text) { return ReadProtocol(text, &to.open_inference); };
  const auto deadline = [&to](const std::string& text) { return ReadDeadline(text, &to.deadline); };
  const auto metadata = [&to](const std::string& text) { return ReadMetadata(text, &to); };
  return {
      {"name=TEXT", "in the report; default: generate, score or classify", Words(&to.name)},
      {"model=NAME", "which model; default: the server's only one", Words(&to.model)},
      {"protocol=NAME", "longshort (default), or open_inference: to score text and classify pixels", protocol},
      {"rate=R", "open loop: R requests per second, Poisson; latency counts from the planned arrival", rate},
      {"concurrency=N", "closed loop (default, with 1): N callers, each waits for its answer",
       Number(1, kMostCallers, &to.concurrency)},
      {"requests=N", "no more than N requests; default 0: what fits in --seconds",
       Number(0, kMostRequests, &to.requests)},
      {"prompt=N|N:N", "tokens of a prompt or document, or a range; default 64; with classify: texts, not images",
       Numbers(1, kMostTokens, &to.prompt)},
      {"tokens=N|N:N", "tokens to generate, or a range; default 16", Numbers(1, kMostTokens, &to.tokens)},
      {"shared=N", "the first N tokens of all prompts are the same; default 0: all differ",
       Number(0, kMostTokens, &to.shared)},
      {"prefix=K", "which shared prefix; the same K is the same prefix in another run; default 0",
       Number(0, kMostRequests, &to.prefix)},
      {"prefixes=N", "N shared prefixes, K to K+N-1, take turns; default 1", Number(1, kMostRequests, &to.prefixes)},
      {"ids=A:B", "prompts are ids from A to B; default: lower-case text, a byte each",
       Numbers(0, std::numeric_limits<int32_t>::max(), &to.ids)},
      {"items=N", "documents or images in a call; default 1", Number(1, kMostItems, &to.items)},
      {"image_side=N", "images of N x N random pixels, sent as pixels; default 224",
       Number(1, kMostImageSide, &to.image_side)},
      {"image=FILE", "this image file instead", Words(&to.image_file)},
      {"deadline=TIME", "of each call, as in 500ms; default: none", deadline},
      {"metadata=KEY:VALUE", "of each call; default: none", metadata},
  };
}

absl::string_view WordOf(const Key& key) {
  return absl::string_view(key.name).substr(0, absl::string_view(key.name).find('='));
}

absl::Status ReadKey(const std::string& text, Workload& workload) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits('=', 1));
  for (const Key& key : KeysOf(workload)) {
    if (WordOf(key) != parts.first) continue;
    absl::Status status = key.read(parts.second);
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
                                  : workload.rpc == Rpc::kScoreText && workload.ids.most == 0;
  if (workload.open_inference && !pixels_or_text) {
    return absl::InvalidArgumentError(
        "has protocol=open_inference, which must be with score, of text, or classify, of pixels");
  }
  if (workload.shared > workload.prompt.least) {
    return absl::InvalidArgumentError(absl::StrCat(
        "has shared=", workload.shared, ", which must be at most the prompt's tokens, ", workload.prompt.least));
  }
  return workload;
}

std::string WorkloadHelp() {
  Workload any;
  std::string help = "A workload is generate, score or classify, and any of these behind it, with commas between:\n";
  for (const Key& key : KeysOf(any)) absl::StrAppendFormat(&help, "  %-18s  %s\n", key.name, key.help);
  return help;
}

}  // namespace longshort::load
