#include "server/options/collector.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"

namespace longshort::server {

absl::StatusOr<CollectorUrl> ParseCollectorUrl(const std::string& text) {
  absl::Status wrong = absl::InvalidArgumentError(
      "it must be host:port, http://host:port or https://host:port, with /path or without it: the address at which a "
      "collector takes OTLP over HTTP (usually port 4318)");
  CollectorUrl url;
  absl::string_view rest = text;
  for (const char* scheme : {"https", "http"}) {
    if (absl::ConsumePrefix(&rest, absl::StrCat(scheme, "://"))) url.scheme = scheme;
  }
  const size_t slash = rest.find('/');
  if (slash != absl::string_view::npos) url.path = std::string(rest.substr(slash));
  std::string host(rest.substr(0, slash));
  if (absl::StrContains(host, "@") || text.find_first_of(" \t\r\n#") != std::string::npos) return wrong;
  const size_t colon = host.rfind(':');
  const bool has_port = colon != std::string::npos && host.find(']', colon) == std::string::npos;
  if (!has_port && !url.scheme.empty()) absl::StrAppend(&host, url.scheme == "https" ? ":443" : ":80");
  const absl::StatusOr<ListenAddress> address = ParseListenAddress(host);
  if (!address.ok() || address->port == 0) return wrong;
  url.address = *address;
  return url;
}

absl::StatusOr<CollectorPems> ReadCollectorPems(const CollectorTlsFiles& files) {
  CollectorPems pems;
  if (!files.authorities.path.empty()) {
    LS_ASSIGN_OR_RETURN(const std::vector<Certificate> authorities, ReadCertificates(files.authorities));
    pems.authorities = ToPem(authorities);
  }
  if (files.certificate.path.empty() != files.key.path.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(files.certificate.option, " and ", files.key.option, " must both be set, or neither"));
  }
  if (files.certificate.path.empty()) return pems;
  LS_ASSIGN_OR_RETURN(const PemPair pair, ReadPemPair(files.certificate, files.key));
  pems.certificate = ToPem(pair.chain);
  pems.key = ToPem(*pair.key);
  return pems;
}

}  // namespace longshort::server
