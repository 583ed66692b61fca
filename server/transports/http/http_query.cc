#include "server/transports/http/http_query.h"

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace longshort::server {
namespace {

// No call has more than five.
constexpr int kMaxParameters = 32;

}  // namespace

std::optional<std::string> QueryParameter(std::string_view query, std::string_view name) {
  int parameters = 0;
  for (const absl::string_view parameter : absl::StrSplit(absl::string_view(query.data(), query.size()), '&')) {
    if (++parameters > kMaxParameters) break;
    const std::string_view one(parameter.data(), parameter.size());
    const size_t equals = one.find('=');
    if (DecodePercent(one.substr(0, equals), true) != name) continue;
    return equals == std::string_view::npos ? "" : DecodePercent(one.substr(equals + 1), true);
  }
  return std::nullopt;
}

}  // namespace longshort::server
