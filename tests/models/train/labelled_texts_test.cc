#include "models/train/labelled_texts.h"

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/train/commands.h"
#include "models/weights/model_directory.h"
#include "tests/models/train/trained_weights.h"
#include "tests/models/train/training_folder.h"

namespace longshort::models::labelled_texts_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LabelledTextsTest : public ::testing::Test {
 protected:
  // "label:text" of each.
  static std::vector<std::string> Read(const std::string& path, const TextColumns& columns = {}) {
    const auto texts = ReadLabelledTexts(path, columns);
    EXPECT_TRUE(texts.ok()) << texts.status();
    std::vector<std::string> all;
    if (!texts.ok()) return all;
    for (const LabelledText& text : *texts) all.push_back(text.label + ":" + text.documents.front());
    return all;
  }
  static std::string Error(const std::string& path, const TextColumns& columns = {}) {
    return std::string(ReadLabelledTexts(path, columns).status().message());
  }

  TrainingFolder folder_;
};

TEST_F(LabelledTextsTest, AFolderAClassATableAndJsonLinesAreRead) {
  folder_.Write("texts/neg/a.txt", "bad\n");
  folder_.Write("texts/pos/b.txt", "good");
  folder_.Write("texts/pos/.DS_Store", "none");
  folder_.Write("texts/.checkpoints/b.txt", "none");
  EXPECT_THAT(Read(folder_.Path("texts")), ElementsAre("neg:bad\n", "pos:good"));
  EXPECT_THAT(Read(folder_.Write("a.csv", "\xef\xbb\xbfid,text,label\r\n1,\"a, \"\"b\"\"\nc\",pos\r\n\r\n2,,neg")),
              ElementsAre("pos:a, \"b\"\nc", "neg:"));
  EXPECT_THAT(Read(folder_.Write("a.tsv", "review\tstars\nx, y\t5\n"), {.text = "review", .label = "stars"}),
              ElementsAre("5:x, y"));
  EXPECT_THAT(Read(folder_.Write("a.jsonl", "\xef\xbb\xbf{\"id\": 7, \"text\": \"x\", \"label\": 1}\r\n\n")),
              ElementsAre("1:x"));
}

TEST_F(LabelledTextsTest, ErrorsNameTheLineAndWhatThereIs) {
  EXPECT_THAT(Error(folder_.Write("a.csv", "review,stars\nx,5\n")),
              HasSubstr("no column 'text'; its first row has review"));
  EXPECT_THAT(Error(folder_.Write("b.csv", "text,label\nx,5\n\"y\nz\",5,6\n")), HasSubstr("b.csv:3: has 3 fields"));
  EXPECT_THAT(Error(folder_.Write("c.csv", "text,label\n\"x,5\n")), HasSubstr("c.csv:2: a quote is not closed"));
  EXPECT_THAT(Error(folder_.Write("d.csv", "text,label\nx,\n")), HasSubstr("d.csv:2: the label"));
  EXPECT_THAT(Error(folder_.Write("e.csv", "text,label\n")), HasSubstr("no labelled text"));
  EXPECT_THAT(Error(folder_.Write("f.jsonl", "{\"body\": \"x\", \"label\": 1}\n")), HasSubstr("no field 'text'"));
  EXPECT_THAT(Error(folder_.Write("g.jsonl", "{\"text\": \"x\", \"label\": 1.5}\n")), HasSubstr("g.jsonl:1"));
}

TEST_F(LabelledTextsTest, ASplitHoldsOutAPartOfEachClassAndKeepsEqualExamplesTogether) {
  struct Item {
    std::string label, text, second;
  };
  const auto example_of = [](const Item& item) {
    return Example{.label = item.label, .content = {item.text, item.second}};
  };
  std::vector<Item> train, held_out;
  for (int i = 0; i < 40; ++i) train.push_back({i % 2 == 0 ? "x" : "y", "query", "text " + std::to_string(i / 4)});
  ASSERT_TRUE(HoldOut(train, held_out, 0.2, "data", example_of).ok());
  EXPECT_EQ(train.size() + held_out.size(), 40);
  std::set<std::string> trained, kept_out;
  for (const Item& item : train) trained.insert(item.label + item.second);
  for (const Item& item : held_out) kept_out.insert(item.label + item.second);
  EXPECT_EQ(kept_out.size(), 4) << "a fifth of the 10 different texts of each class";
  EXPECT_EQ(trained.size(), 16);
  for (const std::string& text : kept_out) EXPECT_FALSE(trained.contains(text)) << text;
  std::vector<Item> equal = {{"x", "a", "b"}, {"x", "a", "b"}};
  EXPECT_THAT(HoldOut(equal, held_out, 0.2, "data", example_of).message(), HasSubstr("class 'x' has only 1"));
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
  EXPECT_THAT(RunTextClassifierCommand({"one", "two"}).message(), HasSubstr("unexpected argument 'two'"));
}

}  // namespace longshort::models::labelled_texts_test
