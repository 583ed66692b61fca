#include "clients/cpp/score_printer.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "clients/cpp/class_table.h"
#include "clients/cpp/token_line.h"

namespace longshort {
namespace {

constexpr char kHeader[] = "    tokens     scored  log-likelihood  bits/byte  bits/char   tokens/s  document\n";

std::string Bits(bool present, double bits) { return present ? absl::StrFormat("%.4f", bits) : "-"; }

std::string ScoreLine(const v1::TextScore& score, const std::string& document) {
  const double seconds = score.timings().prefill_seconds();
  const std::string rate =
      seconds > 0 ? absl::StrFormat("%.0f", static_cast<double>(score.token_count()) / seconds) : "-";
  return absl::StrFormat("%10d %10d %15.4f %10s %10s %10s  %s\n", score.token_count(), score.scored_token_count(),
                         score.log_likelihood(), Bits(score.has_bits_per_byte(), score.bits_per_byte()),
                         Bits(score.has_bits_per_character(), score.bits_per_character()), rate, document);
}

// "reviews/7.txt  (1000 tokens, truncated)"
std::string ClassHeading(const std::string& name, const v1::TextClassification& classification) {
  std::vector<std::string> readings;
  for (const v1::DocumentReading& document : classification.documents()) {
    readings.push_back(absl::StrCat(document.token_count(), " tokens", document.truncated() ? ", truncated" : ""));
  }
  return absl::StrCat(name, "  (", absl::StrJoin(readings, "; "), ")");
}

}  // namespace

ScorePrinter::ScorePrinter(Terminal& terminal, const ScoreForm& form)
    : terminal_(terminal), form_(form), failures_(terminal, form.json, "documents") {
  if (form.language_model && !form.json) terminal_.output << kHeader << std::flush;
}

void ScorePrinter::Print(const std::string& name, const v1::ScoreTextsResponse& answer) {
  if (answer.has_error()) {
    failures_.Add(name, answer.error());
  } else if (form_.json) {
    PrintJson(name, answer);
  } else if (answer.has_classification()) {
    WriteClassTable(ClassHeading(name, answer.classification()), answer.classification().classification(), terminal_);
  } else {
    terminal_.output << ScoreLine(answer.score(), name);
    for (const v1::TokenLogProbability& token : answer.score().tokens()) terminal_.output << TokenLine(token);
    terminal_.output << std::flush;
  }
}

void ScorePrinter::PrintJson(const std::string& name, v1::ScoreTextsResponse answer) {
  if (answer.has_classification()) {
    if (!form_.timings) answer.mutable_classification()->mutable_classification()->clear_timings();
    WriteAnswerJsonLine(name, answer.model(), form_.weights, answer.classification(), terminal_.output);
    return;
  }
  if (!form_.timings) answer.mutable_score()->clear_timings();
  v1::ScoreTextResponse response;  // as ScoreText gives it
  response.mutable_usage()->set_prompt_tokens(answer.score().token_count());
  *response.mutable_model() = answer.model();
  *response.add_scores() = std::move(*answer.mutable_score());
  WriteAnswerJsonLine(name, {}, form_.weights, response, terminal_.output);
}

}  // namespace longshort
