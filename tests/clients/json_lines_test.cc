#include <sstream>

#include "clients/cpp/results.h"
#include "gtest/gtest.h"
#include "longshort/v1/inference.pb.h"

namespace longshort::client::json_lines_test {

TEST(JsonLines, TheNameComesBeforeTheFieldsOfTheMessage) {
  std::ostringstream output;
  v1::ItemError error;
  error.set_code(3);
  WriteNamedJsonLine("a.jpg", error, output);
  EXPECT_EQ(output.str(), "{\"name\":\"a.jpg\",\"code\":3,\"message\":\"\"}\n");
}

TEST(JsonLines, AMessageWithoutFieldsLeavesTheNameAlone) {
  std::ostringstream output;
  WriteNamedJsonLine("a.jpg", v1::KeepAlive(), output);
  EXPECT_EQ(output.str(), "{\"name\":\"a.jpg\"}\n");
}

TEST(JsonLines, AnswersHaveTheirModelAndNoEmptyLists) {
  v1::ModelSelector model;
  model.set_name("reviews");
  model.set_version(2);
  v1::TextClassification answer;
  // What looks like an empty list in a text is none.
  answer.mutable_classification()->add_classes()->set_label("\"logits\":[],");
  std::ostringstream output;
  v1::Model weights;
  weights.set_fingerprint("f1");
  weights.set_precision("fp32");
  WriteAnswerJsonLine("a", weights, &model, answer, output);
  EXPECT_EQ(
      output.str(),
      R"({"name":"a","model":{"name":"reviews","version":"2"},"fingerprint":"f1","precision":"fp32","classification":{"classes":[{"index":0,)"
      R"("label":"\"logits\":[],","probability":0}]}})"
      "\n");
  answer.Clear();
  answer.mutable_classification()->add_logits(0.5F);
  output.str("");
  WriteAnswerJsonLine("a", {}, nullptr, answer, output);
  EXPECT_EQ(output.str(), "{\"name\":\"a\",\"classification\":{\"logits\":[0.5]}}\n");
  output.str("");
  WriteAnswerJsonLine("a", {}, nullptr, v1::ScoreTextResponse(), output);
  EXPECT_EQ(output.str(), "{\"name\":\"a\"}\n");
}

TEST(JsonLines, NamesAreEscapedAndMadeUtf8) {
  std::ostringstream output;
  // A lone byte, a cut character, a surrogate's bytes, and what is right.
  WriteErrorJsonLine("\"\n\xff \xe2\x82 \xed\xa0\x80 \u00e9\U0001F337", v1::ItemError(), output);
  EXPECT_EQ(output.str(),
            "{\"name\":\"\\\"\\n\uFFFD \uFFFD\uFFFD \uFFFD\uFFFD\uFFFD \u00e9\U0001F337\","
            "\"error\":{\"code\":0,\"message\":\"\"}}\n");
}

}  // namespace longshort::client::json_lines_test
