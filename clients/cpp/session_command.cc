// `longshort session`: lists the sessions of a server, moves them to another server, or ends them.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "clients/cpp/command.h"
#include "clients/cpp/results.h"
#include "clients/cpp/session_file.h"
#include "clients/cpp/sessions.h"
#include "google/protobuf/struct.pb.h"

namespace longshort::client {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

// Maximum number of sessions to list that a drain has not moved.
constexpr size_t kMaxListed = 20;

// Shows how many MiB of a session have been transferred.
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

void WriteSessions(const std::vector<SessionOfModel>& sessions, std::ostream& output) {
  std::vector<TextRow> rows = {{"MODEL", "OWNER", "SESSION", "TOKENS", "IDLE"}};
  for (const SessionOfModel& each : sessions) {
    const v1::ListedSession& session = each.session;
    rows.push_back({each.model_name(), session.owner().empty() ? "-" : session.owner(), session.session_id(),
                    absl::StrCat(session.session_tokens()),
                    session.in_use() ? "in use" : absl::StrFormat("%.0f s", session.idle_seconds())});
  }
  output << TextTable(rows);
}

class SessionCommand final : public Command {
 public:
  SessionCommand()
      : Command("session", "List sessions, move them between servers, or end them",
                R"(Usage: longshort session [options] list
       longshort session [options] export ID FILE|-
       longshort session [options] import ID FILE|-
       longshort session [options] close ID
       longshort session [options] drain --to=HOST:PORT

A session is a conversation that the server remembers between calls (session.id of a request). It belongs to one client
(--client-id).

list    Lists your sessions, or with --all-owners those of all clients, for --model or for all language models.
export  Writes the session (its tokens and cache) to FILE or standard output. The session also stays on the server.
import  Creates the session ID on the server from FILE. ID may be a new name. The session continues with exactly the same
        results, and the server does not process its tokens again.
close   Ends the session and releases its memory.
drain   Moves the sessions of all clients to another server, or to servers behind a proxy that routes by the header
        x-session-id. Use it before the server stops. Waits for sessions in use. Ends each session here when the other
        server has it; later calls to it here fail with a message that it has moved. Retries failures until
        --drain-timeout; another run may drain the rest. Exit code 0 means that no session is left.

Export, import and drain require servers that share a --session-key-file. A session can only continue with the same model (by
fingerprint). If the servers use tokens, --all-owners and drain require a token with the scopes infer, sessions and manage that
both servers accept.

Examples:
  longshort --server=a:8500 --model=enwiki session export talk talk.session
  longshort --server=b:8500 --model=enwiki session import talk talk.session
  longshort --server=a:8500 --model=enwiki session close talk
  longshort --server=a:8500 --model=enwiki session export talk - | longshort --server=b:8500 --model=enwiki session import talk -
  longshort --server=a:8500 session list --all-owners
  longshort --server=a:8500 session drain --to=b:8500
)") {}

  void AddOptions(OptionTable& table) override {
    table.AddSwitch("all-owners", "list: include the sessions of all clients.", &all_owners_);
    table.Add("to", "HOST:PORT",
              "drain: the server to move the sessions to. The connection options (--token-file, --tls, ...) apply to "
              "it, too, "
              "except as the next two options say.",
              &to_);
    table.Add("to-tls-ca", "FILE", "drain: PEM file of the CAs to trust for --to; enables TLS.", &to_tls_ca_);
    table.Add("to-tls-server-name", "NAME", "drain: name in the certificate of --to; enables TLS.",
              &to_tls_server_name_);
    table.Add("drain-timeout", "TIME", "drain: time limit of the drain.", &drain_timeout_,
              {absl::Milliseconds(1), absl::InfiniteDuration()});
  }

  absl::StatusOr<ExitCode> Run(const std::vector<std::string>& arguments, const CommandContext& context) override {
    const std::string action = arguments.empty() ? "" : arguments[0];
    const size_t count = arguments.size();
    if (action == "drain" && count == 1) return Drain(context);
    absl::Status status = UsageError(
        "session takes list, export ID FILE, import ID FILE, close ID, or drain --to=HOST:PORT\n"
        "\"longshort session --help\" explains them.");
    if (action == "list" && count == 1) status = List(context);
    if (action == "close" && count == 2) status = Close(arguments[1], context);
    if (action == "export" && count == 3) status = Export(arguments[1], arguments[2], context);
    if (action == "import" && count == 3) status = Import(arguments[1], arguments[2], context);
    LS_RETURN_IF_ERROR(status);
    return ExitCode::kOk;
  }

 private:
  static absl::Status Export(const std::string& id, const std::string& path, const CommandContext& context) {
    v1::ExportSessionRequest request;
    *request.mutable_model() = context.model;
    request.set_session_id(id);
    SessionFileWriter file(path, context.terminal);
    TransferProgress progress(context.terminal);
    LS_RETURN_IF_ERROR(context.client.ExportSession(request, [&](Client::NextPart next) {
      for (v1::SessionPart part; next(part) && file.Write(part);) progress.Show(part);
    }));
    progress.Hide();
    LS_RETURN_IF_ERROR(file.Keep());
    std::ostream& summary = path == "-" ? context.terminal.error : context.terminal.output;
    if (context.options.json) {
      WriteJsonLine(progress.header(), summary);
    } else {
      summary << absl::StrCat("session ", id, ": ", progress.header().session_tokens(), " tokens, ",
                              progress.header().data_bytes(), " bytes\n");
    }
    return absl::OkStatus();
  }

  static absl::Status Import(const std::string& id, const std::string& path, const CommandContext& context) {
    SessionFileReader file(path, context.terminal);
    if (!file.readable()) return UsageError(absl::StrCat(path, " cannot be read"));
    v1::ImportBeginning beginning;
    *beginning.mutable_model() = context.model;
    beginning.set_session_id(id);
    TransferProgress progress(context.terminal);
    const absl::StatusOr<v1::ImportSessionResponse> response =
        context.client.ImportSession(beginning, [&](v1::SessionPart& part) {
          const bool there = file.Read(part);
          if (there) progress.Show(part);
          return there;
        });
    progress.Hide();
    if (!response.ok() && !file.readable()) {
      return UsageError(absl::StrCat(path, " is not an exported session, or is damaged"));
    }
    if (!response.ok()) return response.status();
    if (context.options.json) {
      WriteJsonLine(*response, context.terminal.output);
    } else {
      context.terminal.output << absl::StrCat("session ", id, ": ", response->session_tokens(), " tokens\n");
    }
    return absl::OkStatus();
  }

  static absl::Status Close(const std::string& id, const CommandContext& context) {
    v1::CloseSessionRequest request;
    *request.mutable_model() = context.model;
    request.set_session_id(id);
    return context.client.CloseSession(request);
  }

  absl::Status List(const CommandContext& context) const {
    LS_ASSIGN_OR_RETURN(const auto sessions, ListSessions(context.client, context.model, all_owners_));
    if (!context.options.json) {
      WriteSessions(sessions, context.terminal.output);
      return absl::OkStatus();
    }
    for (const SessionOfModel& each : sessions) {
      WriteNamedJsonLine(each.model_name(), each.session, context.terminal.output);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<ExitCode> Drain(const CommandContext& context) const {
    if (to_.empty()) return UsageError("drain needs --to=HOST:PORT, the server to move the sessions to");
    ConnectionOptions connection = context.options.connection;
    connection.server = to_;
    if (!to_tls_ca_.empty()) connection.tls_ca = to_tls_ca_;
    if (!to_tls_server_name_.empty()) connection.tls_server_name = to_tls_server_name_;
    LS_ASSIGN_OR_RETURN(const ClientCredentials credentials, AsUsage(ReadCredentials(connection)));
    Client to({.server = to_,
               .timeout = context.options.timeout,
               .client_id = context.options.client_id,
               .credentials = credentials});

    std::optional<ProgressBar> bar;
    const auto show = [&](int64_t sessions) {
      bar.emplace(context.terminal, ProgressBar::Options{.unit = "sessions", .total = sessions});
    };
    const absl::StatusOr<DrainResult> result = DrainSessions(
        context.client, to,
        {.model = context.model, .timeout = drain_timeout_, .on_sessions = show, .on_moved = [&] { bar->Advance(); }});
    bar.reset();
    if (!result.ok()) return result.status();
    const size_t listed = std::min(result->left.size(), kMaxListed);
    for (size_t i = 0; i < listed; ++i) Report(result->left[i], context.terminal.error);
    if (listed < result->left.size()) {
      context.terminal.error << "longshort: and " << result->left.size() - listed << " more were not moved\n";
    }
    Summarize(*result, context);
    return result->left.empty() ? ExitCode::kOk : ExitCodeOf(result->left.front().why);
  }

  static void Report(const DrainResult::Left& left, std::ostream& output) {
    const std::string& owner = left.session.session.owner();
    output << absl::StrCat("longshort: session ", left.session.session.session_id(),
                           owner.empty() ? "" : absl::StrCat(" of ", owner), ", model ", left.session.model_name(),
                           ", was not moved: ", absl::StatusCodeToString(left.why.code()), ": ", left.why.message(),
                           "\n");
  }

  static void Summarize(const DrainResult& result, const CommandContext& context) {
    const auto left = static_cast<int64_t>(result.left.size());
    const double seconds = absl::ToDoubleSeconds(result.elapsed);
    if (!context.options.json) {
      context.terminal.output << absl::StrFormat("sessions moved: %d, left: %d; %.1f MiB in %.2f s\n", result.moved,
                                                 left, static_cast<double>(result.bytes) / kMiB, seconds);
      return;
    }
    google::protobuf::Struct summary;
    const auto set = [&](const char* name, double value) { (*summary.mutable_fields())[name].set_number_value(value); };
    set("moved", static_cast<double>(result.moved));
    set("left", static_cast<double>(left));
    set("bytes", static_cast<double>(result.bytes));
    set("seconds", seconds);
    WriteJsonLine(summary, context.terminal.output);
  }

  bool all_owners_ = false;
  std::string to_;
  std::string to_tls_ca_;
  std::string to_tls_server_name_;
  absl::Duration drain_timeout_ = absl::Seconds(60);
};

}  // namespace

std::unique_ptr<Command> MakeSessionCommand() { return std::make_unique<SessionCommand>(); }

}  // namespace longshort::client
