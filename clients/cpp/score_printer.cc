#include "clients/cpp/score_printer.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "clients/cpp/class_table.h"
#include "clients/cpp/json_lines.h"
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

// The answer as ScoreText gives it.
v1::ScoreTextResponse WholeResponse(const v1::ScoreTextsResponse& answer) {
  v1::ScoreTextResponse response;
  *response.add_scores() = answer.score();
  *response.mutable_model() = answer.model();
  response.mutable_usage()->set_prompt_tokens(answer.score().token_count());
  return response;
}

}  // namespace

ScorePrinter::ScorePrinter(Terminal& terminal, bool json, bool language_model)
    : terminal_(terminal), json_(json), failures_(terminal, json, "documents") {
  if (language_model && !json) terminal_.output << kHeader << std::flush;
}

void ScorePrinter::Print(const std::string& name, const v1::ScoreTextsResponse& answer) {
  if (answer.has_error()) {
    failures_.Add(name, answer.error());
  } else if (json_) {
    PrintJson(name, answer);
  } else if (answer.has_classification()) {
    WriteClassTable(ClassHeading(name, answer.classification()), answer.classification().classification(), terminal_);
  } else {
    terminal_.output << ScoreLine(answer.score(), name);
    for (const v1::TokenLogProbability& token : answer.score().tokens()) terminal_.output << TokenLine(token);
    terminal_.output << std::flush;
  }
}

void ScorePrinter::PrintJson(const std::string& name, const v1::ScoreTextsResponse& answer) {
  if (answer.has_classification()) {
    WriteNamedJsonLine(name, answer.classification(), terminal_.output);
  } else {
    WriteNamedJsonLine(name, WholeResponse(answer), terminal_.output);
  }
}

}  // namespace longshort
