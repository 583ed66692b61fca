// Which sessions there are: what is asked and answered.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/calls/model_reference.h"

namespace longshort {

struct ListSessionsCall {
  ModelReference model;
  bool all_owners = false;
  // 0: as many as fit.
  int64_t page_size = 0;
  // Of the page before; empty for the first one.
  std::string page_token;
};

struct ListedSession {
  std::string owner;
  std::string id;
  int64_t tokens = 0;
  absl::Duration idle = absl::ZeroDuration();
  bool in_use = false;
};

struct SessionList {
  std::vector<ListedSession> sessions;
  // Empty if there is no further page.
  std::string next_page_token;
};

}  // namespace longshort
