#include "base/strict_json.h"

#include <set>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_format.h"

namespace longshort {
namespace {

using Event = nlohmann::json::parse_event_t;

// Thrown by Watcher to leave the parser, caught in ParseJsonObject.
struct Refusal {
  std::string reason;
};

// Sees every event of a parse, and refuses what the parser would let pass.
class Watcher final {
 public:
  explicit Watcher(const JsonLimits& limits) : limits_(limits) {}

  void See(int depth, Event event, const nlohmann::json& parsed) {
    if (++elements_ > limits_.elements) throw Refusal{absl::StrFormat("more than %d elements", limits_.elements)};
    if (depth >= limits_.depth) throw Refusal{absl::StrFormat("nested deeper than %d", limits_.depth)};
    if (event == Event::object_start) keys_.emplace_back();
    if (event == Event::object_end) keys_.pop_back();
    if (event == Event::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!keys_.back().insert(key).second) throw Refusal{absl::StrFormat("duplicate key %s", QuoteForMessage(key))};
    }
  }

 private:
  const JsonLimits limits_;
  int64_t elements_ = 0;
  std::vector<std::set<std::string>> keys_;  // of the objects that are open, outermost first
};

absl::StatusOr<nlohmann::json> Refuse(const std::string& name, std::string_view reason) {
  return absl::InvalidArgumentError(absl::StrFormat("%s: %s", name, reason));
}

}  // namespace

absl::StatusOr<nlohmann::json> ParseJsonObject(std::string_view text, const std::string& name,
                                               const JsonLimits& limits) {
  // The parser takes a NUL for the end of its input, whatever follows.
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos) {
    return Refuse(name, absl::StrFormat("not valid JSON: NUL at byte %d", nul));
  }
  try {
    Watcher watcher(limits);
    auto document = nlohmann::json::parse(text, [&watcher](int depth, Event event, const nlohmann::json& parsed) {
      watcher.See(depth, event, parsed);
      return true;
    });
    if (!document.is_object()) return Refuse(name, absl::StrFormat("a JSON %s, not an object", document.type_name()));
    return document;
  } catch (const Refusal& refusal) {
    return Refuse(name, refusal.reason);
  } catch (const nlohmann::json::parse_error& error) {
    return Refuse(name, absl::StrFormat("not valid JSON at byte %d (counted from 1)", error.byte));
  } catch (const std::exception& error) {
    return Refuse(name, absl::StrFormat("not readable as JSON: %s", QuoteForMessage(error.what())));
  }
}

std::string QuoteForMessage(std::string_view text) {
  constexpr size_t kLongest = 100;
  if (text.size() <= kLongest) return absl::StrFormat("'%s'", absl::CHexEscape(std::string(text)));
  return absl::StrFormat("'%s' (cut, %d bytes)", absl::CHexEscape(std::string(text.substr(0, kLongest))), text.size());
}

}  // namespace longshort
