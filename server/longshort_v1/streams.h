// The RPCs of longshort.v1 that stream texts, documents and sessions.
#pragma once

#include <memory>

#include "server/rpc/call.h"

namespace longshort {

std::unique_ptr<CallWork> MakeGenerateStream(Call& call);
std::unique_ptr<CallWork> MakeScoreTexts(Call& call);
std::unique_ptr<CallWork> MakeExportSession(Call& call);
std::unique_ptr<CallWork> MakeImportSession(Call& call);

}  // namespace longshort
