#include "models/train/labelled_texts.h"

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/train/commands.h"
#include "models/weights/model_directory.h"
#include "tests/models/train/trained_weights.h"
#include "tests/models/train/training_folder.h"

namespace longshort::models::labelled_texts_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr ProblemType kMulti = ProblemType::kMultiLabel;
constexpr ProblemType kRegression = ProblemType::kRegression;

class LabelledTextsTest : public ::testing::Test {
 protected:
  // "label+label:text" of each.
  static std::vector<std::string> Read(const std::string& path, const TextFormat& format = {}) {
    const auto texts = ReadLabelledTexts(path, format);
    EXPECT_TRUE(texts.ok()) << texts.status();
    std::vector<std::string> all;
    if (!texts.ok()) return all;
    for (const LabelledExample& text : *texts) {
      all.push_back(absl::StrJoin(text.labels, "+") + ":" + absl::StrJoin(text.content, "|"));
    }
    return all;
  }
  static std::string Error(const std::string& path, const TextFormat& format = {}) {
    return std::string(ReadLabelledTexts(path, format).status().message());
  }
  std::string LineError(const std::string& line, const TextFormat& format = {}) const {
    return Error(folder_.Write("line.jsonl", line), format);
  }

  TrainingFolder folder_;
};

TEST_F(LabelledTextsTest, AFolderAClassATableAndJsonLinesAreRead) {
  folder_.Write("texts/neg/a.txt", "bad\n");
  folder_.Write("texts/pos/b.txt", "good");
  EXPECT_THAT(Read(folder_.Path("texts")), ElementsAre("neg:bad\n", "pos:good"));
  EXPECT_THAT(Read(folder_.Write("a.csv", "\xef\xbb\xbfid,text,label\r\n1,\"a, \"\"b\"\"\nc\",pos\r\n\r\n2,,neg")),
              ElementsAre("pos:a, \"b\"\nc", "neg:"));
  EXPECT_THAT(
      Read(folder_.Write("a.tsv", "review\tstars\nx, y\t5\n"), {.text_column = "review", .label_column = "stars"}),
      ElementsAre("5:x, y"));
  EXPECT_THAT(Read(folder_.Write("a.jsonl",
                                 "\xef\xbb\xbf{\"id\": 7, \"text\": \"x\", \"label\": 1}\r\n\n"
                                 "{\"label\": true, \"text\": \"\xc3\xa9\"}")),
              ElementsAre("1:x", "true:\xc3\xa9"));
}

TEST_F(LabelledTextsTest, TheSeparatorOfATableIsFound) {
  EXPECT_THAT(Read(folder_.Write("a.csv", "text;label\n\"x; y, z\";pos\n")), ElementsAre("pos:x; y, z"));
  EXPECT_THAT(Read(folder_.Write("b.csv", "label\ttext\npos\tx, y; z\n")), ElementsAre("pos:x, y; z"));
  EXPECT_THAT(Read(folder_.Write("c.tsv", "text,label\nx,pos\n")), ElementsAre("pos:x"));
  EXPECT_THAT(Read(folder_.Write("g.csv", "text|label\nx, y; z|pos\n")), ElementsAre("pos:x, y; z"));
  EXPECT_THAT(Read(folder_.Write("d.csv", "text,label,a;b;c;d\nx,pos,1\n")), ElementsAre("pos:x"));
  EXPECT_THAT(Error(folder_.Write("e.csv", "review;stars;id\nx;5;1\n")),
              HasSubstr("no column 'text' or 'label'; its first row has 'review', 'stars', 'id'; name two with "
                        "--text-column and --label-column"));
  EXPECT_THAT(Error(folder_.Write("f.csv", "text;stars\nx;5\n")),
              HasSubstr("no column 'label'; its first row has 'text', 'stars'; name one with --label-column"));
}

TEST_F(LabelledTextsTest, ALineBeforeTheNamesMayNameTheSeparator) {
  EXPECT_THAT(Read(folder_.Write("a.csv", "\xef\xbb\xbfsep=;\r\ntext;label\r\n\"x, y\";pos\r\n")),
              ElementsAre("pos:x, y"));
  EXPECT_THAT(Read(folder_.Write("b.csv", "SEP=|\ntext|label\nx|pos\n")), ElementsAre("pos:x"));
  EXPECT_THAT(Read(folder_.Write("c.csv", "\"sep=\t\"\ntext\tlabel\nx\tpos\n")), ElementsAre("pos:x"));
  EXPECT_THAT(Read(folder_.Write("d.csv", "text,sep=;\nx,pos\n"), {.label_column = "sep=;"}), ElementsAre("pos:x"));
  EXPECT_THAT(Error(folder_.Write("e.csv", "sep=;\ntext;stars\nx;5\n")), HasSubstr("e.csv:2: no column 'label'"));
  EXPECT_THAT(Error(folder_.Write("f.csv", "sep=;\ntext;label\nx\n")), HasSubstr("f.csv:3: has 1 field"));
  EXPECT_THAT(Error(folder_.Write("g.csv", "sep=;")), HasSubstr("g.csv: is empty; it must begin with a row of names"));
}

TEST_F(LabelledTextsTest, LinesMayEndWithCarriageReturnsAlone) {
  EXPECT_THAT(Read(folder_.Write("a.csv", "text,label\rx,pos\r\"y\nz\",neg\r")), ElementsAre("pos:x", "neg:y\nz"));
  EXPECT_THAT(Read(folder_.Write("b.csv", "sep=;\rtext;label\rx;pos")), ElementsAre("pos:x"));
  EXPECT_THAT(Error(folder_.Write("c.csv", "text,label\rx,pos\ry\r")), HasSubstr("c.csv:3: has 1 field"));
  EXPECT_THAT(Read(folder_.Write("a.jsonl", "{\"text\": \"x\", \"label\": 1}\r{\"text\": \"y\", \"label\": 2}\r")),
              ElementsAre("1:x", "2:y"));
  EXPECT_THAT(LineError("{\"text\": \"x\", \"label\": 1}\r{\"text\": \"y\"}"), HasSubstr("line.jsonl:2: no field"));
}

TEST_F(LabelledTextsTest, ErrorsOfTheFirstRowShowWhatItIs) {
  EXPECT_THAT(Error(folder_.Write("a.csv",
                                  "Gr\xc3\xb6\xc3\x9f"
                                  "e;x\n")),
              HasSubstr("row has 'Gr\xc3\xb6\xc3\x9f"
                        "e', 'x';"));
  std::string wide = "a";
  for (int i = 1; i < 1000; ++i) wide += ",a";
  EXPECT_THAT(Error(folder_.Write("b.csv", wide)), HasSubstr("'a' and 980 more; name two")) << "20 are shown";
  EXPECT_THAT(Error(folder_.Write("c.csv", "\"text,label\nx,5\n")), HasSubstr("c.csv:1: a quote is not closed"));
  EXPECT_THAT(Error(folder_.Write("d.csv", "text,label,text\nx,5,y\n")),
              HasSubstr("d.csv:1: the column 'text' stands twice"));
}

TEST_F(LabelledTextsTest, RowsWithoutContentAreSkipped) {
  EXPECT_THAT(Read(folder_.Write("excel.csv", "text;label\r\nx;5\r\n;\r\n;;\r\n  \r\ny;6\r\n")),
              ElementsAre("5:x", "6:y"));
}

TEST_F(LabelledTextsTest, OtherFilesAreNotTakenForJsonLines) {
  for (const char* other : {"[1]", "text,label", "null"}) {
    EXPECT_THAT(LineError("\n  " + std::string(other) + "\n"),
                HasSubstr("line.jsonl:2: is '" + std::string(other) +
                          "'; a line must be an object like {\"label\": \"pos\", \"text\": \"...\"}, and the name of a "
                          "table must end with .csv or .tsv"));
  }
}

TEST_F(LabelledTextsTest, OtherFieldsOfJsonLinesMayHoldAnything) {
  const std::string deep = std::string(100, '[') + "NaN, \"]\"" + std::string(100, ']');
  for (const std::string& other : {deep, std::string("NaN"), std::string("-Infinity"), std::string("null"),
                                   std::string("{\"a\": [1, {\"text\": 2}]}"), std::string("\"}\""),
                                   std::string(R"("\ud800\"")"), std::string("1e999"), std::string("false")}) {
    EXPECT_THAT(Read(folder_.Write("a.jsonl", "{\"other\": " + other + ", \"text\": \"x\", \"label\": \"a\"}\n")),
                ElementsAre("a:x"))
        << other;
  }
  for (const char* open : {"[", "\"\\\"", "no"}) {
    EXPECT_THAT(LineError(std::string(R"({"text": "x", "label": "a", "other": )") + open + "}"),
                HasSubstr("line.jsonl:1: not valid JSON"))
        << open;
  }
}

TEST_F(LabelledTextsTest, SeveralLabelsAreAListOrAFieldWithSeparators) {
  EXPECT_THAT(Read(folder_.Write("a.jsonl",
                                 "{\"text\": \"x\", \"label\": [\"b\", \"a\", \"b\", 3, true]}\n"
                                 "{\"text\": \"y\", \"label\": []}\n"),
                   {.problem = kMulti}),
              ElementsAre("3+a+b+true:x", ":y"));
  EXPECT_THAT(Read(folder_.Write("a.csv", "text,label\nx,\"b, a,\"\ny,\n"), {.problem = kMulti}),
              ElementsAre("a+b:x", ":y"));
  EXPECT_THAT(Read(folder_.Write("b.csv", "text,label\nx,\"b, c||a\"\n"), {.label_separator = "||", .problem = kMulti}),
              ElementsAre("a+b, c:x"));
  for (const char* broken : {R"("a")", R"(["a", null])", R"([["a"]])", R"([1.5])", "7"}) {
    EXPECT_THAT(LineError(std::string(R"({"text": "x", "label": )") + broken + "}", {.problem = kMulti}),
                HasSubstr("; it must be a list of strings, integers or booleans such as [\"a\", \"b\"], or []"))
        << broken;
  }
  EXPECT_THAT(LineError(R"({"text": "x", "label": "7"})", {.problem = kMulti}),
              HasSubstr("label is '7'; it must be a list"));
  EXPECT_THAT(LineError(R"({"text": "x", "label": ["a"]})"), HasSubstr("--problem=multi-label trains on lists"));
}

TEST_F(LabelledTextsTest, ARegressionHasNumbers) {
  EXPECT_THAT(Read(folder_.Write("a.jsonl",
                                 "{\"text\": \"x\", \"label\": 3.25}\n{\"text\": \"y\", \"label\": -2}\n"
                                 "{\"text\": \"z\", \"label\": \"1e3\"}"),
                   {.problem = kRegression}),
              ElementsAre("3.25:x", "-2:y", "1e3:z"));
  for (const char* broken : {"null", "[1]"}) {
    EXPECT_THAT(LineError(std::string(R"({"text": "x", "label": )") + broken + "}", {.problem = kRegression}),
                HasSubstr(std::string("label is ") + broken + "; it must be a number"));
  }
}

TEST_F(LabelledTextsTest, TwoDocumentsAreReadForModelsOfTwo) {
  const std::string pair = folder_.Write("a.jsonl", R"({"label": "same", "text": "one", "second_text": "two"})");
  EXPECT_THAT(Read(pair, {.documents = 2}), ElementsAre("same:one|two"));
  EXPECT_THAT(Error(pair), HasSubstr("'second_text' is for a model of two documents"));
  EXPECT_THAT(LineError(R"({"label": "a", "text": "x"})", {.documents = 2}), HasSubstr("no field 'second_text'"));
  EXPECT_THAT(Error(folder_.Write("a.csv", "text,label\nx,y\n"), {.documents = 2}),
              HasSubstr("a.csv:2: the model reads two documents, which only JSON Lines have"));
}

TEST_F(LabelledTextsTest, ErrorsNameTheLineAndWhatThereIs) {
  EXPECT_THAT(Error(folder_.Write("b.csv", "text,label\nx,5\n\"y\nz\",5,6\n")),
              HasSubstr("b.csv:3: has 3 fields, but the first row has 2; put a field that "
                        "contains ',' in double quotes"));
  EXPECT_THAT(Error(folder_.Write("c.csv", "text,label\n\"x,5\n")), HasSubstr("c.csv:2: a quote is not closed"));
  EXPECT_THAT(Error(folder_.Write("q.csv", "text,label\n\"one said \\\"x\\\" ok\",5\n")),
              HasSubstr("q.csv:2: a quote within a quoted field must be doubled"));
  EXPECT_THAT(Error(folder_.Write("d.csv", "text,label\nx,\n")),
              HasSubstr("d.csv:2: label is ''; it must be one line that is not empty"));
  EXPECT_THAT(Error(folder_.Write("e.csv", "text,label\n")), HasSubstr("no labelled text"));
  EXPECT_THAT(Error(folder_.Write("empty.csv", "")), HasSubstr("it must begin with a row of names"));
  EXPECT_THAT(LineError("\n\n"), HasSubstr("no labelled text"));
  EXPECT_THAT(LineError("{\"label\": \"a\", \"text\": \"x\"}\n{\"label\": \"a\", \"text\""), HasSubstr("line.jsonl:2"));
  EXPECT_THAT(LineError(R"({"body": "x", "label": 1})"),
              HasSubstr("no field 'text'; name the field with --text-column"));
  EXPECT_THAT(LineError(R"({"text": "x"})"), HasSubstr("no field 'label'; name the field with --label-column"));
  EXPECT_THAT(LineError(R"({"text": 3, "label": 1})"), HasSubstr("text is 3; it must be a string"));
  EXPECT_THAT(LineError(R"({"text": "x", "label": ""})"), HasSubstr("one line that is not empty"));
  for (const char* label : {"1.0", "1.5", "null", "{}"}) {
    EXPECT_THAT(LineError(std::string(R"({"text": "x", "label": )") + label + "}"),
                HasSubstr(absl::StrCat("label is ", label, "; it must be a string, an integer, true or false")));
  }
}

TEST_F(LabelledTextsTest, OtherEncodingsAreNamedAndConverted) {
  const std::string western = folder_.Write("a.csv", "text,label\na caf\xe9,pos\n");
  EXPECT_THAT(Error(western),
              HasSubstr("a.csv:2: is not UTF-8: 'a caf\\xe9,pos'; as windows-1252 it reads 'a caf\xc3\xa9,pos'"
                        "; if that is right, give --encoding=windows-1252"));
  for (const char* encoding : {"windows-1252", "latin-1", "latin_1", "ISO-8859-1", "cp1252"}) {
    EXPECT_THAT(Read(western, {.encoding = encoding}), ElementsAre("pos:a caf\xc3\xa9")) << encoding;
  }
  EXPECT_THAT(Error(western, {.encoding = "klingon"}),
              HasSubstr("--encoding is 'klingon'; it must be an encoding of iconv"));
  EXPECT_THAT(Error(western, {.encoding = "ascii"}), HasSubstr("a.csv:2: byte 17 of the file is not ascii"));

  std::string wide = "\xff\xfe";
  for (const char letter : std::string_view("text,label\nx,pos\n")) wide += {letter, '\0'};
  const std::string excel = folder_.Write("b.csv", wide), unmarked = folder_.Write("c.csv", wide.substr(2));
  EXPECT_THAT(Error(excel), HasSubstr("b.csv: is not UTF-8; it is probably utf-16; give --encoding=utf-16"));
  EXPECT_THAT(Error(unmarked), HasSubstr("probably utf-16le"));
  EXPECT_THAT(Read(excel, {.encoding = "utf-16"}), ElementsAre("pos:x"));
  EXPECT_THAT(Read(unmarked, {.encoding = "UTF-16LE"}), ElementsAre("pos:x"));

  EXPECT_THAT(Error(folder_.Write("book.xlsx", "PK\x03\x04\xff")),
              HasSubstr("as workbooks of Excel are; save the table"));
  EXPECT_THAT(Error(folder_.Write("a.csv.gz", "\x1f\x8b\x08\xff")), HasSubstr("a.csv.gz: is compressed with gzip"));
  EXPECT_THAT(Error(folder_.Write("a.parquet", std::string("PAR1\0\0\xff", 7))), HasSubstr("is a Parquet file; save"));
  const std::string wider("\xff\xfe\0\0t\0\0\0", 8);
  EXPECT_THAT(Error(folder_.Write("wider.csv", wider)), HasSubstr("it is probably utf-32; give --encoding=utf-32"));
  EXPECT_THAT(Error(folder_.Write("odd.csv", "text,label\n\x81,pos\n")),
              HasSubstr("; give its encoding with --encoding"));
  EXPECT_THAT(LineError("{\"text\": \"\xe9\", \"label\": 1}"), HasSubstr("--encoding=windows-1252"));
  EXPECT_THAT(LineError("\x1b[2J\xe9"), HasSubstr("it reads '\\x1b[2J\xc3\xa9'")) << "no control characters";
  folder_.Write("texts/pos/a.txt", "caf\xe9");
  EXPECT_THAT(Error(folder_.Path("texts")), HasSubstr("texts/pos/a.txt:1: is not UTF-8"));
  EXPECT_THAT(Read(folder_.Path("texts"), {.encoding = "latin1"}), ElementsAre("pos:caf\xc3\xa9"));
}

TEST_F(LabelledTextsTest, AFolderOfTextsBecomesAModelAndThatAModelWithOtherLabels) {
  for (int i = 0; i < 6; ++i) {
    folder_.Write("texts/neg/" + std::to_string(i), "bad " + std::to_string(i));
    folder_.Write("texts/pos/" + std::to_string(i), "good " + std::to_string(i));
    for (const char* label : {"a", "b", "c"}) {
      folder_.Write(std::string("more/") + label + "/" + std::to_string(i), label + std::to_string(i));
    }
  }
  const auto run = [this](const std::string& data, const std::string& out, const std::string& option) {
    return RunTextClassifierCommand(
        {folder_.Path(data), "--out=" + folder_.Path(out), "--steps=2", "--batch=4", "--warmup-steps=0", option});
  };
  absl::Status status = run("texts", "repo/first/1", "--seed=1");
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(folder_.Read("repo/first/1/labels.txt"), "neg\npos\n");
  EXPECT_TRUE(std::filesystem::exists(folder_.Path("repo/first/1.checkpoint"))) << "a checkpoint is the default";

  // So low a rate changes nothing that float16 shows, so that the weights are those of the first model.
  const std::string from = "--from=" + folder_.Path("repo/first/1");
  ASSERT_TRUE(RunTextClassifierCommand({folder_.Path("more"), "--out=" + folder_.Path("repo/second/1"), "--steps=1",
                                        "--batch=4", "--warmup-steps=0", "--learning-rate=1e-9", "--seed=2", from})
                  .ok());
  EXPECT_EQ(folder_.Read("repo/second/1/labels.txt"), "a\nb\nc\n");
  const auto first = OpenModelDirectory(folder_.Path("repo/first/1"));
  const auto second = OpenModelDirectory(folder_.Path("repo/second/1"));
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(second->weights.Find("seq_classifer.mlpblock.2.weight")->shape[0], 3) << "the head is exchanged";
  const auto embeddings = [](const ModelDirectory& model) {
    for (const NamedParameter& weight : TrainedWeights(model.weights)) {
      if (weight.name == "model.embeddings.word_embeddings.weight") return weight.value;
    }
    return at::Tensor();
  };
  EXPECT_LT((embeddings(*first) - embeddings(*second)).abs().max().item<double>(), 1e-3);

  status = run("texts", "repo/first/1", "--seed=2");
  EXPECT_THAT(status.message(), HasSubstr("--seed is 1 there and 2 here"));
  EXPECT_TRUE(run("texts", "repo/first/1", "--replace").ok()) << "the same run";
  EXPECT_THAT(RunTextClassifierCommand({folder_.Path("texts"), "--config=x", from}).message(), HasSubstr("--from"));
  EXPECT_THAT(RunTextClassifierCommand({folder_.Path("texts"), "--label-separator="}).message(),
              HasSubstr("--label-separator must not be empty"));
  EXPECT_THAT(RunTextClassifierCommand({"one", "two"}).message(), HasSubstr("unexpected argument 'two'"));
}

}  // namespace longshort::models::labelled_texts_test
