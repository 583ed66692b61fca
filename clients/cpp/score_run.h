// A run of `longshort score` over many documents: from their source to lines, and to an exit code.
#pragma once

#include "clients/cpp/answer_file.h"
#include "clients/cpp/bulk_scoring.h"
#include "clients/cpp/command.h"
#include "clients/cpp/score_printer.h"

namespace longshort {

struct ScoreRun {
  BulkOptions bulk;
  ScoreForm form;
  // Neither progress nor news of servers.
  bool quiet = false;
  // Where answers go instead of standard output, behind those that it has; nullptr: there is none.
  AnswerFile* file = nullptr;
};

// Tells a sentence about servers, unless the run is quiet.
void TellNews(const Terminal& terminal, bool quiet, const std::string& news);

// Errors were told to context.terminal.error, with how to go on.
ExitCode ScoreDocuments(const ScoreRun& run, const v1::Model& model, DocumentSource& source, CheckDocument check,
                        const CommandContext& context);

}  // namespace longshort
