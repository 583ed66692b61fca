// `longshort classify`: what is asked, and what is shown of each image.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/clients/program_fixture.h"
#include "tests/clients/temporary_folder.h"

namespace longshort::client::classify_test {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

// The fake model names an image's first byte as its likeliest class, and takes none that begins with '!'.
class ClassifyTest : public ProgramTest {
 protected:
  ClassifyTest() {
    server_.models = {FlowersModel()};
    server_.classify = [](const v1::Image& image) {
      v1::ImageResult result;
      if (image.encoded().front() == '!') {
        result.mutable_error()->set_code(3);
        result.mutable_error()->set_message("it is no image");
        return result;
      }
      v1::Classification& classification = *result.mutable_classification();
      v1::ClassProbability& first = *classification.add_classes();
      first.set_label(image.encoded().substr(0, 1));
      first.set_probability(0.75F);
      v1::ClassProbability& second = *classification.add_classes();
      second.set_index(2);
      second.set_probability(0.25F);
      classification.add_logits(1.5F);
      classification.add_logits(-2);
      return result;
    };
  }

  // "a", "b", ... each with its name as its first byte.
  void WriteImages(int count) {
    for (int i = 0; i < count; ++i) {
      const std::string name(1, static_cast<char>('a' + i));
      folder_.Write(name + ".png", name + " bytes");
    }
  }

  TemporaryFolder folder_;
};

TEST_F(ClassifyTest, AnImageIsATableOfItsClasses) {
  const std::string file = folder_.Write("x.jpg", "rose");
  ASSERT_EQ(Run({"classify", file}), ExitCode::kOk) << error_;
  EXPECT_EQ(output_, absl::StrCat(file, "\n  r         75.00 %\n  class 2   25.00 %\n  logits by class: 1.5 -2\n"));
  ASSERT_EQ(server_.classify_requests().size(), 1);
  const v1::ClassifyImageRequest request = server_.classify_requests().front();
  EXPECT_EQ(request.images(0).encoded(), "rose");
  EXPECT_EQ(request.model().name(), "flowers");
  EXPECT_EQ(request.model().version(), 1);
  EXPECT_EQ(request.top_k(), 5);
  EXPECT_FALSE(request.all_logits());
}

TEST_F(ClassifyTest, APersonSeesBars) {
  at_terminal_ = true;
  ASSERT_EQ(Run({"classify", folder_.Write("x.jpg", "rose")}), ExitCode::kOk) << error_;
  // 20 characters are a probability of 1.
  EXPECT_THAT(output_, HasSubstr("75.00 %  ███████████████\n"));
  EXPECT_THAT(output_, HasSubstr("25.00 %  █████\n"));
}

TEST_F(ClassifyTest, OptionsReachTheirFields) {
  ASSERT_EQ(Run({"classify", "--top-k=3", "--logits", folder_.Write("x.jpg", "rose")}), ExitCode::kOk) << error_;
  EXPECT_EQ(server_.classify_requests().front().top_k(), 3);
  EXPECT_TRUE(server_.classify_requests().front().all_logits());
  EXPECT_EQ(Run({"classify", "--top-k=0", folder_ / "x.jpg"}), ExitCode::kUsage);
}

TEST_F(ClassifyTest, AFolderIsSentInSeveralCallsAndShownInOrder) {
  WriteImages(10);
  ASSERT_EQ(Run({"classify", "--json", folder_.path().string()}), ExitCode::kOk) << error_;
  // 4 images a call are what the server takes.
  EXPECT_EQ(server_.classify_requests().size(), 3);
  size_t place = 0;
  for (char name = 'a'; name < 'a' + 10; ++name) {
    place =
        output_.find(absl::StrCat("{\"name\":\"", folder_ / std::string(1, name), ".png\",\"classification\":"), place);
    ASSERT_NE(place, std::string::npos) << name << "\n" << output_;
  }
}

TEST_F(ClassifyTest, FilesOfAFolderThatAreNotReadAreCounted) {
  WriteImages(2);
  for (int i = 0; i < 12; ++i) folder_.Write(absl::StrCat("x.", i), "bytes");
  for (const char* name : {"one.gif", "deep/two.gif", "three.avif"}) folder_.Write(name, "bytes");
  EXPECT_EQ(Run({"classify", "--json", folder_.path().string()}), ExitCode::kOk);
  EXPECT_EQ(
      error_,
      "longshort: not read: 2 *.gif, 1 *.0, 1 *.1, 1 *.10, 1 *.11, 1 *.2, 1 *.3, 1 *.4, 1 *.5, 1 *.6, and 4 others"
      "\n");
}

TEST_F(ClassifyTest, ABadImageIsAnErrorBesideItsNameAndTheOthersContinue) {
  const std::string good = folder_.Write("a.png", "good");
  const std::string bad = folder_.Write("b.png", "!");
  const std::string large = folder_.Write("c.png", std::string(1001, 'x'));
  EXPECT_EQ(Run({"classify", good, bad, large, good}), ExitCode::kInvalid);
  EXPECT_THAT(output_, testing::MatchesRegex(absl::StrCat(good, "\n(.|\n)*", good, "\n(.|\n)*")));
  EXPECT_THAT(error_, HasSubstr(absl::StrCat(bad, ": INVALID_ARGUMENT: it is no image\n")));
  EXPECT_THAT(error_, HasSubstr(absl::StrCat(large, ": INVALID_ARGUMENT: the file has 1001 bytes")));
  EXPECT_THAT(error_, EndsWith("longshort: of 4 images, 2 invalid or not allowed\n"));
}

TEST_F(ClassifyTest, WithJsonABadImageIsAnObjectToo) {
  const std::string bad = folder_.Write("b.png", "!");
  EXPECT_EQ(Run({"classify", "--json", bad}), ExitCode::kInvalid);
  EXPECT_EQ(output_, absl::StrCat("{\"name\":\"", bad, "\",\"error\":{\"code\":3,\"message\":\"it is no image\"}}\n"));
  EXPECT_EQ(error_, "longshort: of 1 images, 1 invalid or not allowed\n");
}

TEST_F(ClassifyTest, StandardInputIsAnImage) {
  ASSERT_EQ(Run({"classify", "-"}, "tulip"), ExitCode::kOk) << error_;
  EXPECT_EQ(server_.classify_requests().front().images(0).encoded(), "tulip");
  EXPECT_THAT(output_, testing::StartsWith("-\n  t "));
}

TEST_F(ClassifyTest, ManyImagesHaveAProgressBarAtTheTerminalOnly) {
  WriteImages(3);
  ASSERT_EQ(Run({"classify", folder_.path().string()}), ExitCode::kOk);
  EXPECT_EQ(error_, "");
  at_terminal_ = true;
  ASSERT_EQ(Run({"classify", folder_.path().string()}), ExitCode::kOk);
  EXPECT_THAT(error_, HasSubstr("0/3 images"));
  EXPECT_THAT(error_, EndsWith("\r\033[K"));
}

TEST_F(ClassifyTest, AFailedCallEndsTheRunWithItsCode) {
  WriteImages(10);
  server_.status = grpc::Status(grpc::StatusCode::UNAVAILABLE, "the server is stopping");
  EXPECT_EQ(Run({"classify", folder_.path().string()}), ExitCode::kUnavailable);
  EXPECT_THAT(error_, HasSubstr("the server is stopping"));
  EXPECT_EQ(output_, "");
}

TEST_F(ClassifyTest, TimeoutEndsCallsThatHang) {
  WriteImages(10);
  server_.stream_hangs = true;
  EXPECT_EQ(Run({"--timeout=100ms", "classify", folder_.path().string()}), ExitCode::kCancelled);
}

TEST_F(ClassifyTest, LanguageModelsAreRefusedWithTheCommandThatTakesThem) {
  v1::Model model;
  model.set_name("characters");
  server_.models = {model};
  EXPECT_EQ(Run({"classify", folder_.Write("x.jpg", "rose")}), ExitCode::kInvalid);
  EXPECT_THAT(error_, HasSubstr("characters is a language model; use \"longshort score\""));
  EXPECT_TRUE(server_.classify_requests().empty());
}

TEST_F(ClassifyTest, OptionsForTextsAreRefusedWithImages) {
  const std::string file = folder_.Write("x.jpg", "rose");
  EXPECT_EQ(Run({"classify", "--lines", file}), ExitCode::kUsage);
  EXPECT_THAT(error_, HasSubstr("are for classifiers of texts; flowers takes images"));
  EXPECT_EQ(Run({"classify", "--truncate", file}), ExitCode::kUsage);
  EXPECT_EQ(Run({"classify", "--second", file, file}), ExitCode::kUsage);
}

}  // namespace longshort::client::classify_test
