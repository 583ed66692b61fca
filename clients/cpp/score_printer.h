// Shows what became of scored documents.
#pragma once

#include <string>

#include "clients/cpp/item_failures.h"
#include "clients/cpp/json_lines.h"
#include "clients/cpp/terminal.h"
#include "longshort/v1/inference.pb.h"

namespace longshort {

struct ScoreForm {
  bool json = false;
  // Whether objects have "timings".
  bool timings = false;
  bool language_model = true;
  // Of the model that scores; objects have them.
  Weights weights;
};

// Scores of a language model: a table with a row a document, behind it a line a token if there are tokens. Classes: a
// table a document. With `json`, one object a document.
class ScorePrinter final {
 public:
  // Writes the table's heading.
  ScorePrinter(Terminal& terminal, const ScoreForm& form);

  // `answer` as ScoreTexts gives it; its id is not shown.
  void Print(const std::string& name, const v1::ScoreTextsResponse& answer);

  ItemFailures& failures() { return failures_; }

 private:
  void PrintJson(const std::string& name, v1::ScoreTextsResponse answer);

  Terminal& terminal_;
  const ScoreForm form_;
  ItemFailures failures_;
};

}  // namespace longshort
