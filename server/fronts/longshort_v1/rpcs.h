// The RPCs of longshort.v1.
#pragma once

#include <memory>
#include <vector>

#include "server/call/rpc.h"

namespace longshort::server {

std::vector<Rpc> LongshortV1Rpcs();

// The work of the streaming RPCs.
std::unique_ptr<CallWork> MakeGenerateStream(Call& call);
std::unique_ptr<CallWork> MakeScoreTexts(Call& call);
std::unique_ptr<CallWork> MakeExportSession(Call& call);
std::unique_ptr<CallWork> MakeImportSession(Call& call);

}  // namespace longshort::server
