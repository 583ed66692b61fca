// `longshort generate`: continues a prompt.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "clients/cpp/command.h"
#include "clients/cpp/inputs.h"
#include "clients/cpp/results.h"

namespace longshort::client {
namespace {

absl::Status ReadLogitBias(const std::string& text, v1::Sampling& sampling) {
  const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(text, absl::MaxSplits(':', 1));
  int32_t token = 0;
  float bias = 0;
  if (!absl::SimpleAtoi(parts.first, &token) || !absl::SimpleAtof(parts.second, &bias)) {
    return absl::InvalidArgumentError("must be a token id, a colon and a number, such as 65:-1.5");
  }
  (*sampling.mutable_logit_bias())[token] = bias;
  return absl::OkStatus();
}

// Adds an option whose argument sets a field of `message`, which must outlive the table.
template <typename Message, typename T>
void AddField(OptionTable& table, const char* name, const char* hint, const char* default_text, const char* help,
              Message& message, void (Message::*set)(T)) {
  table.AddCustom(name, hint, default_text, help, [&message, set](const std::string& text) -> absl::Status {
    T value{};
    LS_RETURN_IF_ERROR(ReadOptionValue(text, &value));
    (message.*set)(value);
    return absl::OkStatus();
  });
}

class GenerateCommand final : public Command {
 public:
  GenerateCommand()
      : Command("generate", "Continue a prompt, and show the text as it is generated",
                R"(Usage: longshort generate [options] [--prompt=TEXT | FILE | -]

Continues a prompt, given by --prompt, a file or standard input (including its final newline). Writes the text to standard
output as it is generated, then a summary with the seed to standard error. The server has defaults for sampling options that
are not given. It applies them in this order: logit bias; repetition, frequency and presence penalty; temperature; top-k;
top-p; min-p.

With --log-probabilities, each output line is one token: log-probability, id, bytes. With --json, each line is one
GenerateStreamResponse (with --no-stream, the only line is one GenerateResponse).

Examples:
  longshort generate --prompt='The history of '
  longshort generate --prompt='The history of ' --max-tokens=500 --temperature=0.7 --top-p=0.9 --seed=1
  longshort generate --completions=3 --stop='.' --echo --prompt='It was '
  longshort generate --session=talk --prompt='It was '; longshort generate --session=talk --session-must-exist --prompt=' But '
  longshort generate --temperature=0 --json chapter.txt | jq -j '.delta.text // empty'
)") {}

  void AddOptions(OptionTable& table) override {
    using Request = v1::GenerateRequest;
    v1::Sampling& sampling = *request_.mutable_sampling();
    request_.set_completions(1);
    table.Add("prompt", "TEXT", "The prompt.", &prompt_);
    table.AddSwitch("ids", "The prompt is a list of token ids instead of text.", &ids_);
    AddField(table, "max-tokens", "N", "0", "Maximum number of tokens to generate; 0 means the server's default, 256.",
             request_, &Request::set_max_tokens);
    AddField(table, "completions", "N", "1", "Number of completions, 1 to 16.", request_, &Request::set_completions);
    table.Add("session", "ID",
              "Continue the session with this id (of this --client-id); the first call creates it. If the stream is "
              "interrupted, the session keeps the text so far; see --no-keep-partial.",
              &session_);
    table.AddSwitch("no-keep-partial",
                    "If the stream is interrupted, the session stays as it was before the call. With --no-stream it "
                    "always does.",
                    &no_keep_partial_);
    table.AddSwitch("session-must-exist", "Fail if the session does not exist.", &session_must_exist_);
    table.AddCustom("stop", "TEXT", "", "End the completion before this text; may be given up to 16 times.",
                    [this](const std::string& text) { return request_.add_stop(text), absl::OkStatus(); });
    AddField(table, "echo", "", "", "Start each completion with the prompt.", request_, &Request::set_echo);
    AddField(table, "temperature", "X", "",
             "Sampling temperature, in [0, 100]; 0 always takes the most probable token.", sampling,
             &v1::Sampling::set_temperature);
    AddField(table, "top-k", "N", "0", "Keep the N most probable tokens; 0 keeps all.", sampling,
             &v1::Sampling::set_top_k);
    AddField(table, "top-p", "X", "", "Keep the smallest set of tokens whose probabilities add up to X, in (0, 1].",
             sampling, &v1::Sampling::set_top_p);
    AddField(table, "min-p", "X", "0", "Keep tokens with at least X times the highest probability, in [0, 1].",
             sampling, &v1::Sampling::set_min_p);
    AddField(table, "repetition-penalty", "X", "",
             "Penalty for tokens of prompt and completion, in (0, 100]: above 1 makes them less probable, below 1 "
             "more.",
             sampling, &v1::Sampling::set_repetition_penalty);
    AddField(table, "frequency-penalty", "X", "0",
             "Subtract X from a token's logit for each time it was generated, in [-100, 100].", sampling,
             &v1::Sampling::set_frequency_penalty);
    AddField(table, "presence-penalty", "X", "0",
             "Subtract X from a token's logit if it was generated, in [-100, 100].", sampling,
             &v1::Sampling::set_presence_penalty);
    table.AddCustom("logit-bias", "ID:X", "", "Add X to the logit of token ID; may be repeated.",
                    [&sampling](const std::string& text) { return ReadLogitBias(text, sampling); });
    AddField(table, "seed", "N", "", "Random seed: the same seed gives the same tokens.", sampling,
             &v1::Sampling::set_seed);
    AddField(table, "log-probabilities", "", "", "Print tokens with their log-probabilities instead of text.", request_,
             &Request::set_token_log_probabilities);
    AddField(table, "top-alternatives", "N", "0",
             "With --log-probabilities, also the N most probable tokens at each position, 0 to 20.", request_,
             &Request::set_top_alternatives);
    AddField(table, "raw", "", "", "Write the model's bytes, even if they are not UTF-8.", request_,
             &Request::set_return_raw);
    table.AddSwitch("no-stream", "Request the whole answer at once.", &no_stream_);
  }

  absl::StatusOr<ExitCode> Run(const std::vector<std::string>& arguments, const CommandContext& context) override {
    if (prompt_.has_value() && !arguments.empty()) return UsageError("give --prompt or a file, not both");
    if (arguments.size() > 1) return UsageError("generate takes one prompt");
    if (session_ == "") return UsageError("--session is empty; it must be the session's id");
    if (session_must_exist_ && !session_.has_value()) {
      return UsageError("--session-must-exist needs --session");
    }
    if (no_keep_partial_ && !session_.has_value()) return UsageError("--no-keep-partial needs --session");
    std::string text;
    if (prompt_.has_value()) {
      text = *std::move(prompt_);
    } else {
      LS_ASSIGN_OR_RETURN(text, AsUsage(ReadDocument(arguments.empty() ? "-" : arguments.front(), context.terminal)));
    }
    LS_ASSIGN_OR_RETURN(*request_.mutable_prompt(), AsUsage(MakeInput(std::move(text), ids_)));
    *request_.mutable_model() = context.model;
    if (session_.has_value()) {
      request_.mutable_session()->set_id(*session_);
      request_.mutable_session()->set_must_exist(session_must_exist_);
      request_.set_keep_partial(!no_stream_ && !no_keep_partial_);
    }
    LS_RETURN_IF_ERROR(no_stream_ ? Generate(context) : Stream(context));
    return ExitCode::kOk;
  }

 private:
  CompletionPrinter MakePrinter(Terminal& terminal) const {
    using Form = CompletionPrinter::Form;
    const Form form = request_.token_log_probabilities() ? Form::kTokens
                      : request_.return_raw()            ? Form::kRaw
                                                         : Form::kText;
    return CompletionPrinter(terminal, form, request_.completions());
  }

  absl::Status Stream(const CommandContext& context) const {
    if (context.options.json) {
      return context.client.GenerateStream(request_, [&](const v1::GenerateStreamResponse& message) {
        WriteJsonLine(message, context.terminal.output);
        CancelUnlessWritable(context);
      });
    }
    CompletionPrinter printer = MakePrinter(context.terminal);
    return context.client.GenerateStream(request_, [&](const v1::GenerateStreamResponse& message) {
      printer.OnMessage(message);
      CancelUnlessWritable(context);
    });
  }

  absl::Status Generate(const CommandContext& context) const {
    LS_ASSIGN_OR_RETURN(const v1::GenerateResponse response, context.client.Generate(request_));
    if (context.options.json) {
      WriteJsonLine(response, context.terminal.output);
    } else {
      MakePrinter(context.terminal).OnResponse(response);
    }
    return absl::OkStatus();
  }

  v1::GenerateRequest request_;
  std::optional<std::string> prompt_;
  bool ids_ = false;
  std::optional<std::string> session_;
  bool session_must_exist_ = false;
  bool no_keep_partial_ = false;
  bool no_stream_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeGenerateCommand() { return std::make_unique<GenerateCommand>(); }

}  // namespace longshort::client
