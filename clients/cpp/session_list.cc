#include "clients/cpp/session_list.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "clients/cpp/text_table.h"

namespace longshort {
namespace {

// Versions of a model with the same weights have the same sessions: one of them is enough.
absl::StatusOr<std::vector<v1::ModelSelector>> LanguageModels(Client& client) {
  LS_ASSIGN_OR_RETURN(const v1::ListModelsResponse response, client.ListModels());
  std::vector<v1::ModelSelector> models;
  std::set<std::pair<std::string, std::string>> known;
  for (const v1::Model& model : response.models()) {
    if (model.has_classifier() || !known.emplace(model.name(), model.fingerprint()).second) continue;
    v1::ModelSelector& selector = models.emplace_back();
    selector.set_name(model.name());
    selector.set_version(model.version());
  }
  return models;
}

}  // namespace

std::string SessionOfModel::model_name() const { return absl::StrCat(model.name(), "/", model.version()); }

absl::StatusOr<std::vector<SessionOfModel>> ListSessions(Client& client, const v1::ModelSelector& model,
                                                         bool all_owners) {
  std::vector<v1::ModelSelector> models = {model};
  if (model.name().empty()) {
    LS_ASSIGN_OR_RETURN(models, LanguageModels(client));
  } else if (model.version() == 0) {
    v1::GetModelRequest request;
    *request.mutable_model() = model;
    LS_ASSIGN_OR_RETURN(const v1::Model newest, client.GetModel(request));
    models.front().set_version(newest.version());
  }
  std::vector<SessionOfModel> sessions;
  for (const v1::ModelSelector& each : models) {
    v1::ListSessionsRequest request;
    *request.mutable_model() = each;
    request.set_all_owners(all_owners);
    do {
      LS_ASSIGN_OR_RETURN(v1::ListSessionsResponse page, client.ListSessions(request));
      for (v1::ListedSession& session : *page.mutable_sessions()) sessions.push_back({each, std::move(session)});
      request.set_page_token(page.next_page_token());
    } while (!request.page_token().empty());
  }
  return sessions;
}

void WriteSessions(const std::vector<SessionOfModel>& sessions, std::ostream& output) {
  std::vector<TextRow> rows = {{"MODEL", "OWNER", "SESSION", "TOKENS", "IDLE"}};
  for (const SessionOfModel& each : sessions) {
    const v1::ListedSession& session = each.session;
    rows.push_back({each.model_name(), session.owner().empty() ? "-" : session.owner(), session.session_id(),
                    absl::StrCat(session.session_tokens()),
                    session.in_use() ? "in use" : absl::StrFormat("%.0f s", session.idle_seconds())});
  }
  WriteTable(rows, output);
}

}  // namespace longshort
