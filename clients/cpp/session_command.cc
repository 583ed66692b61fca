// `longshort session`: takes conversations that a server remembers to another, or ends them.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "clients/cpp/command.h"
#include "clients/cpp/json_lines.h"
#include "clients/cpp/progress_bar.h"
#include "clients/cpp/session_file.h"

namespace longshort {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

// Shows how many MiB of a session have come or gone, as its parts pass by.
class TransferProgress final {
 public:
  explicit TransferProgress(Terminal& terminal) : terminal_(terminal) {}

  void Show(const v1::SessionPart& part) {
    if (part.has_header()) {
      header_ = part.header();
      bar_.emplace(terminal_,
                   ProgressBar::Options{.unit = "MiB", .total = std::max<int64_t>(1, header_.data_bytes() / kMiB)});
    }
    bytes_ += static_cast<int64_t>(part.data().size());
    for (; bar_.has_value() && shown_ < bytes_ / kMiB; ++shown_) bar_->Advance();
  }
  void Hide() { bar_.reset(); }

  const v1::SessionHeader& header() const { return header_; }

 private:
  Terminal& terminal_;
  std::optional<ProgressBar> bar_;
  v1::SessionHeader header_;
  int64_t bytes_ = 0;
  int64_t shown_ = 0;  // MiB
};

class SessionCommand final : public Command {
 public:
  absl::string_view name() const override { return "session"; }
  absl::string_view summary() const override { return "Move conversations between servers, or end them"; }
  absl::string_view description() const override {
    return R"(Usage: longshort session [options] export ID FILE|-
       longshort session [options] import ID FILE|-
       longshort session [options] close ID

A session is a conversation that a server remembers between calls (session.id of a request), for one client (--client-id).

export  Writes the session to FILE, or to standard output: its tokens and its cache. It stays on the server, too.
import  Gives a server the session in FILE, under the name ID, which may be another one. It goes on there with the very
        same results, and nothing is read again.
close   Ends the session and frees what it holds.

Servers let sessions go and come if they share a --session-key-file. A session goes on with the same model only (by
fingerprint), and belongs to its client.

Examples:
  longshort --server=a:8500 --model=enwiki session export talk talk.session
  longshort --server=b:8500 --model=enwiki session import talk talk.session
  longshort --server=a:8500 --model=enwiki session close talk
  longshort --server=a:8500 --model=enwiki session export talk - | longshort --server=b:8500 --model=enwiki session import talk -
)";
  }
  void AddOptions(OptionTable& /*table*/) override {}

  ExitCode Run(const std::vector<std::string>& arguments, const CommandContext& context) override {
    const std::string action = arguments.empty() ? "" : arguments[0];
    const size_t count = action == "close" ? 2 : 3;
    if ((action != "export" && action != "import" && action != "close") || arguments.size() != count) {
      return FailUsage(
          context.terminal,
          "session takes export ID FILE, import ID FILE, or close ID\n\"longshort session --help\" explains");
    }
    if (action == "close") return Close(arguments[1], context);
    return action == "export" ? Export(arguments[1], arguments[2], context)
                              : Import(arguments[1], arguments[2], context);
  }

 private:
  static ExitCode Export(const std::string& id, const std::string& path, const CommandContext& context) {
    v1::ExportSessionRequest request;
    *request.mutable_model() = context.model;
    request.set_session_id(id);
    SessionFileWriter file(path, context.terminal);
    TransferProgress progress(context.terminal);
    bool written = true;
    const absl::Status status = context.client.ExportSession(request, [&](const v1::SessionPart& part) {
      progress.Show(part);
      return written = written && file.Write(part);
    });
    progress.Hide();
    if (!status.ok() && written) return FailCall(context, status);
    if (const absl::Status kept = file.Keep(); !kept.ok()) return FailUsage(context.terminal, kept.message());
    std::ostream& told = path == "-" ? context.terminal.error : context.terminal.output;
    if (context.options.json) {
      WriteJsonLine(progress.header(), told);
    } else {
      told << absl::StrCat("session ", id, ": ", progress.header().session_tokens(), " tokens, ",
                           progress.header().data_bytes(), " bytes\n");
    }
    return ExitCode::kOk;
  }

  static ExitCode Import(const std::string& id, const std::string& path, const CommandContext& context) {
    const auto file = SessionFileReader::Open(path, context.terminal);
    if (!file.ok()) return FailUsage(context.terminal, file.status().message());
    v1::ImportBeginning beginning;
    *beginning.mutable_model() = context.model;
    beginning.set_session_id(id);
    TransferProgress progress(context.terminal);
    const absl::StatusOr<v1::ImportSessionResponse> response =
        context.client.ImportSession(beginning, [&](v1::SessionPart& part) {
          const bool there = (*file)->Read(part);
          if (there) progress.Show(part);
          return there;
        });
    progress.Hide();
    if (!response.ok() && !(*file)->readable()) {
      return FailUsage(context.terminal, absl::StrCat(path, " is no exported session, or was damaged"));
    }
    if (!response.ok()) return FailCall(context, response.status());
    if (context.options.json) {
      WriteJsonLine(*response, context.terminal.output);
    } else {
      context.terminal.output << absl::StrCat("session ", id, ": ", response->session_tokens(), " tokens\n");
    }
    return ExitCode::kOk;
  }

  static ExitCode Close(const std::string& id, const CommandContext& context) {
    v1::CloseSessionRequest request;
    *request.mutable_model() = context.model;
    request.set_session_id(id);
    const absl::Status status = context.client.CloseSession(request);
    return status.ok() ? ExitCode::kOk : FailCall(context, status);
  }
};

}  // namespace

std::unique_ptr<Command> MakeSessionCommand() { return std::make_unique<SessionCommand>(); }

}  // namespace longshort
