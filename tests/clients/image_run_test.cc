#include <sstream>
#include <string>
#include <vector>

#include "clients/cpp/item_run.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/clients/temporary_folder.h"

namespace longshort::client::image_run_test {

using testing::ElementsAre;
using testing::HasSubstr;

class ImageBatchesTest : public testing::Test {
 protected:
  ImageBatchesTest() {
    limits_.set_images(64);
    limits_.set_image_bytes(100);
  }

  // A file of so many bytes for each, named by its place.
  std::vector<std::string> Files(const std::vector<int>& sizes) {
    std::vector<std::string> names;
    for (const int size : sizes) {
      names.push_back(folder_.Write(std::to_string(names.size()), std::string(static_cast<size_t>(size), 'x')));
    }
    return names;
  }

  // How many images there are in each batch's request.
  std::vector<int> RequestSizes(const std::vector<std::string>& names, const ImageBatches::Options& options) {
    ImageBatches batches(names, limits_, options, terminal_);
    std::vector<int> sizes;
    while (!batches.AtEnd()) sizes.push_back(batches.Next().images.size());
    return sizes;
  }

  TemporaryFolder folder_;
  v1::Limits limits_;
  std::istringstream input_;
  std::ostringstream output_;
  Terminal terminal_{input_, output_, output_};
};

TEST_F(ImageBatchesTest, ABatchEndsAtTheCount) {
  EXPECT_THAT(RequestSizes(Files({1, 1, 1, 1, 1}), {.images = 2}), ElementsAre(2, 2, 1));
}

TEST_F(ImageBatchesTest, TheServersLimitOnImagesIsKept) {
  limits_.set_images(3);
  EXPECT_THAT(RequestSizes(Files({1, 1, 1, 1}), {.images = 8}), ElementsAre(3, 1));
}

TEST_F(ImageBatchesTest, ABatchEndsAtTheBytesUnlessItIsOneImage) {
  // 40 + 20 are the 60 allowed; 90 stands alone; so do 50 and 20.
  EXPECT_THAT(RequestSizes(Files({40, 20, 90, 50, 20}), {.images = 8, .bytes = 60}), ElementsAre(2, 1, 1, 1));
}

TEST_F(ImageBatchesTest, ABatchIsNoLargerThanTheServerTakesOneImage) {
  // What fits for one image fits for a message.
  EXPECT_THAT(RequestSizes(Files({60, 40, 1}), {.images = 8, .bytes = 1000}), ElementsAre(2, 1));
}

TEST_F(ImageBatchesTest, ImagesThatAreTooLargeOrUnreadableAreErrorsAndNotSent) {
  std::vector<std::string> names = Files({10, 101, 20});
  names.push_back(folder_ / "missing");
  ImageBatches batches(names, limits_, {}, terminal_);
  const ImageBatch batch = batches.Next();
  EXPECT_TRUE(batches.AtEnd());
  EXPECT_EQ(batch.names, names);
  EXPECT_EQ(batch.images.size(), 2);
  ASSERT_EQ(batch.statuses.size(), 4);
  EXPECT_TRUE(batch.statuses[0].ok() && batch.statuses[2].ok());
  EXPECT_THAT(batch.statuses[1].message(), HasSubstr("101 bytes; the server accepts at most 100"));
  EXPECT_EQ(batch.statuses[3].code(), absl::StatusCode::kNotFound);
}

}  // namespace longshort::client::image_run_test
