// Parses any text as a token file. It is rejected with a printable message, or an access table is made of the entries
// and finds them.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "server/access/access_table.h"
#include "server/access/token_file.h"
#include "server/calls/call_names.h"
#include "tests/fuzz/require.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace longshort;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto entries = server::ParseTokenFile(text, "fuzz");
  if (!entries.ok()) {
    Require(entries.status().code() == absl::StatusCode::kInvalidArgument, "a broken file is an invalid argument");
    Require(entries.status().message().size() < 1000, "a message is short, however long the file");
    for (const char c : entries.status().message()) Require(c >= ' ', "a message has no control characters");
    return 0;
  }
  Require(!entries->empty(), "a file names an identity");
  const server::AccessTable table(
      *entries, [](const std::string& name) { return std::make_shared<server::Identity>(name, name); });
  for (const server::AccessEntry& entry : *entries) {
    Require(server::IsName(entry.name), "an identity has a name");
    Require(!entry.scopes.empty(), "a credential is good for something");
    if (entry.kind == server::CredentialKind::kToken) {
      Require(entry.credential.size() == 32, "a digest has 32 bytes");
      continue;
    }
    server::Credentials credentials;
    (entry.kind == server::CredentialKind::kSpiffeId ? credentials.spiffe_id : credentials.certificate_subject) =
        entry.credential;
    const auto grant = table.Find(credentials, absl::InfinitePast());
    Require(grant.ok() && (*grant)->identity->name() == entry.name, "each certificate is its identity's");
  }
  return 0;
}
