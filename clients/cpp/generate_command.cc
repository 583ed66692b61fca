// `longshort generate`: continues a prompt.
#include <map>
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

absl::Status ReadLogitBias(const std::string& text, std::map<int32_t, float>* biases) {
  const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(text, absl::MaxSplits(':', 1));
  int32_t token = 0;
  float bias = 0;
  if (!absl::SimpleAtoi(parts.first, &token) || !absl::SimpleAtof(parts.second, &bias)) {
    return absl::InvalidArgumentError("must be a token id, a colon and a number, such as 65:-1.5");
  }
  (*biases)[token] = bias;
  return absl::OkStatus();
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
    table.Add("prompt", "TEXT", "The prompt.", &prompt_);
    table.AddSwitch("ids", "The prompt is a list of token ids instead of text.", &ids_);
    table.Add("max-tokens", "N", "Maximum number of tokens to generate; 0 means the server's default, 256.",
              &max_tokens_);
    table.Add("completions", "N", "Number of completions, 1 to 16.", &completions_);
    table.Add("session", "ID",
              "Continue the session with this id (of this --client-id); the first call creates it. If the stream is "
              "interrupted, the session keeps the text so far; see --no-keep-partial.",
              &session_);
    table.AddSwitch("no-keep-partial",
                    "If the stream is interrupted, the session stays as it was before the call. With --no-stream it "
                    "always does.",
                    &no_keep_partial_);
    table.AddSwitch("session-must-exist", "Fail if the session does not exist.", &session_must_exist_);
    table.Add("stop", "TEXT", "End the completion before this text; may be given up to 16 times.", &stop_);
    table.AddSwitch("echo", "Start each completion with the prompt.", &echo_);
    table.Add("temperature", "X", "Sampling temperature, in [0, 100]; 0 always takes the most probable token.",
              &temperature_);
    table.Add("top-k", "N", "Keep the N most probable tokens; 0 keeps all.", &top_k_);
    table.Add("top-p", "X", "Keep the smallest set of tokens whose probabilities add up to X, in (0, 1].", &top_p_);
    table.Add("min-p", "X", "Keep tokens with at least X times the highest probability, in [0, 1].", &min_p_);
    table.Add(
        "repetition-penalty", "X",
        "Penalty for tokens of prompt and completion, in (0, 100]: above 1 makes them less probable, below 1 more.",
        &repetition_penalty_);
    table.Add("frequency-penalty", "X",
              "Subtract X from a token's logit for each time it was generated, in [-100, 100].", &frequency_penalty_);
    table.Add("presence-penalty", "X", "Subtract X from a token's logit if it was generated, in [-100, 100].",
              &presence_penalty_);
    table.AddCustom("logit-bias", "ID:X", "", "Add X to the logit of token ID; may be repeated.",
                    [this](const std::string& text) { return ReadLogitBias(text, &logit_bias_); });
    table.Add("seed", "N", "Random seed: the same seed gives the same tokens.", &seed_);
    table.AddSwitch("log-probabilities", "Print tokens with their log-probabilities instead of text.",
                    &log_probabilities_);
    table.Add("top-alternatives", "N",
              "With --log-probabilities, also the N most probable tokens at each position, 0 to 20.",
              &top_alternatives_);
    table.AddSwitch("raw", "Write the model's bytes, even if they are not UTF-8.", &raw_);
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
    LS_ASSIGN_OR_RETURN(v1::Input prompt, AsUsage(MakeInput(std::move(text), ids_)));

    const v1::GenerateRequest request = MakeRequest(context.model, std::move(prompt));
    LS_RETURN_IF_ERROR(no_stream_ ? Generate(request, context) : Stream(request, context));
    return ExitCode::kOk;
  }

 private:
  v1::GenerateRequest MakeRequest(const v1::ModelSelector& model, v1::Input prompt) const {
    v1::GenerateRequest request;
    *request.mutable_model() = model;
    *request.mutable_prompt() = std::move(prompt);
    request.set_max_tokens(max_tokens_);
    request.set_completions(completions_);
    if (session_.has_value()) {
      request.mutable_session()->set_id(*session_);
      request.mutable_session()->set_must_exist(session_must_exist_);
      request.set_keep_partial(!no_stream_ && !no_keep_partial_);
    }
    for (const std::string& stop : stop_) request.add_stop(stop);
    request.set_echo(echo_);
    request.set_token_log_probabilities(log_probabilities_);
    request.set_top_alternatives(top_alternatives_);
    request.set_return_raw(raw_);

    v1::Sampling& sampling = *request.mutable_sampling();
    if (temperature_.has_value()) sampling.set_temperature(*temperature_);
    sampling.set_top_k(top_k_);
    if (top_p_.has_value()) sampling.set_top_p(*top_p_);
    sampling.set_min_p(min_p_);
    if (repetition_penalty_.has_value()) sampling.set_repetition_penalty(*repetition_penalty_);
    sampling.set_frequency_penalty(frequency_penalty_);
    sampling.set_presence_penalty(presence_penalty_);
    sampling.mutable_logit_bias()->insert(logit_bias_.begin(), logit_bias_.end());
    if (seed_.has_value()) sampling.set_seed(*seed_);
    return request;
  }

  CompletionPrinter MakePrinter(Terminal& terminal) const {
    using Form = CompletionPrinter::Form;
    const Form form = log_probabilities_ ? Form::kTokens : raw_ ? Form::kRaw : Form::kText;
    return CompletionPrinter(terminal, form, completions_);
  }

  absl::Status Stream(const v1::GenerateRequest& request, const CommandContext& context) const {
    if (context.options.json) {
      return context.client.GenerateStream(request, [&](const v1::GenerateStreamResponse& message) {
        WriteJsonLine(message, context.terminal.output);
        CancelUnlessWritable(context);
      });
    }
    CompletionPrinter printer = MakePrinter(context.terminal);
    return context.client.GenerateStream(request, [&](const v1::GenerateStreamResponse& message) {
      printer.OnMessage(message);
      CancelUnlessWritable(context);
    });
  }

  absl::Status Generate(const v1::GenerateRequest& request, const CommandContext& context) const {
    LS_ASSIGN_OR_RETURN(const v1::GenerateResponse response, context.client.Generate(request));
    if (context.options.json) {
      WriteJsonLine(response, context.terminal.output);
    } else {
      MakePrinter(context.terminal).OnResponse(response);
    }
    return absl::OkStatus();
  }

  std::optional<std::string> prompt_;
  bool ids_ = false;
  int64_t max_tokens_ = 0;
  int32_t completions_ = 1;
  std::optional<std::string> session_;
  bool session_must_exist_ = false;
  bool no_keep_partial_ = false;
  std::vector<std::string> stop_;
  bool echo_ = false;
  std::optional<double> temperature_;
  int32_t top_k_ = 0;
  std::optional<double> top_p_;
  double min_p_ = 0;
  std::optional<double> repetition_penalty_;
  double frequency_penalty_ = 0;
  double presence_penalty_ = 0;
  std::map<int32_t, float> logit_bias_;
  std::optional<uint64_t> seed_;
  bool log_probabilities_ = false;
  int32_t top_alternatives_ = 0;
  bool raw_ = false;
  bool no_stream_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeGenerateCommand() { return std::make_unique<GenerateCommand>(); }

}  // namespace longshort::client
