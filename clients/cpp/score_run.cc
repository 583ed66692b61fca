#include "clients/cpp/score_run.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "clients/cpp/progress_bar.h"

namespace longshort {
namespace {

// Seldom enough for a log of a whole night.
constexpr absl::Duration kBetweenProgressLines = absl::Seconds(30);

std::string Lines(int64_t count) { return absl::StrCat(count, count == 1 ? " whole line" : " whole lines"); }

// One run's output, progress and end.
class Run final {
 public:
  Run(const ScoreRun& run, const v1::Model& model, const CommandContext& context)
      : run_(run),
        model_(model),
        context_(context),
        terminal_{context.terminal.input,
                  run.file == nullptr ? context.terminal.output : run.file->stream(),
                  context.terminal.error,
                  context.terminal.input_is_terminal,
                  context.terminal.error_is_terminal,
                  context.terminal.output_is_terminal && run.file == nullptr},
        printer_(terminal_, run.form) {}

  ExitCode Score(DocumentSource& source, CheckDocument check) {
    if (run_.file != nullptr) {
      const absl::Status resumed = Resume(source);
      if (!resumed.ok()) return FailUsage(terminal_, absl::StrCat("--resume: ", resumed.message()));
    }
    const BulkEnd end = [&] {
      ProgressBar progress(terminal_, {.unit = "documents",
                                       .total = source.total(),
                                       .before = before_,
                                       .line_interval = kBetweenProgressLines,
                                       .quiet = run_.quiet});
      const auto on_scored = [&](const std::string& name, const v1::ScoreTextsResponse& answer) {
        progress.Hide();
        const bool written = Print(name, answer);
        progress.Advance();
        return written;
      };
      const auto on_news = [&](const std::string& news) {
        progress.Hide();
        TellNews(terminal_, run_.quiet, news);
      };
      return ScoreInBulk(context_.servers, model_, run_.bulk, source, check, {on_scored, on_news});
    }();
    return End(end);
  }

 private:
  // Takes what the file has. Errors: the file is of something else, or cannot be used.
  absl::Status Resume(DocumentSource& source) {
    absl::StatusOr<std::vector<absl::Status>> errors = run_.file->PassAnswered(source, model_);
    if (!errors.ok()) return errors.status();
    for (const absl::Status& error : *errors) printer_.failures().Count(error);
    before_ = run_.file->lines();
    const absl::StatusOr<int64_t> cut = run_.file->CutPartialLine();
    if (!cut.ok()) return cut.status();
    if (*cut > 0) {
      terminal_.error << "longshort: the last line of " << run_.file->path() << " was not whole: its " << *cut
                      << " bytes were cut off\n";
    }
    if (before_ > 0 && !run_.quiet) {
      terminal_.error << "longshort: going on behind the " << Lines(before_) << " of " << run_.file->path() << "\n";
    }
    return absl::OkStatus();
  }

  // False if nothing can be written any more.
  bool Print(const std::string& name, const v1::ScoreTextsResponse& answer) {
    printer_.Print(name, answer);
    if (!terminal_.output) {
      for (const ServerClient& server : context_.servers) server.client->Cancel();
      return false;
    }
    ++finished_;
    return true;
  }

  ExitCode End(const BulkEnd& end) {
    const bool written = static_cast<bool>(terminal_.output);
    const absl::Status kept = run_.file == nullptr ? absl::OkStatus() : run_.file->Finish();
    ExitCode code = printer_.failures().Summarize(before_ + finished_);
    if (end.status.ok() && written && kept.ok()) {
      if (before_ > 0 && finished_ == 0) TellNews(terminal_, run_.quiet, "every document had its line there already");
      return code;
    }
    if (written && !end.status.ok()) {
      terminal_.error << "longshort: " << finished_ << " documents were answered, then it ended:\n";
      code = FailCall(context_, end.status, end.server);
    }
    if (!kept.ok()) terminal_.error << "longshort: " << kept.message() << "\n";
    TellHowToGoOn();
    return written && kept.ok() ? code : ExitCode::kOther;
  }

  void TellHowToGoOn() const {
    if (run_.file != nullptr) {
      terminal_.error << "longshort: " << run_.file->path() << " has " << Lines(run_.file->lines())
                      << "; the same command goes on behind them\n";
    } else if (run_.form.json && !terminal_.output_is_terminal) {
      terminal_.error
          << "longshort: " << Lines(finished_)
          << " were written; the same command with --resume=FILE, the file that they are in, goes on behind "
             "them\n";
    }
  }

  const ScoreRun& run_;
  const v1::Model& model_;
  const CommandContext& context_;
  Terminal terminal_;
  ScorePrinter printer_;
  int64_t before_ = 0;    // documents that an earlier run has answered
  int64_t finished_ = 0;  // documents of this run whose answers were written
};

}  // namespace

void TellNews(const Terminal& terminal, bool quiet, const std::string& news) {
  if (!quiet) terminal.error << "longshort: " << news << "\n" << std::flush;
}

ExitCode ScoreDocuments(const ScoreRun& run, const v1::Model& model, DocumentSource& source, CheckDocument check,
                        const CommandContext& context) {
  return Run(run, model, context).Score(source, check);
}

}  // namespace longshort
