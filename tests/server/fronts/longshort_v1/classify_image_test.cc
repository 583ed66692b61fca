// ClassifyImage over a real connection, with a scripted engine.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "longshort/v1/inference.grpc.pb.h"
#include "tests/core/fakes/live_heap.h"
#include "tests/server/fakes/scripted_classifier.h"
#include "tests/server/fakes/scripted_engine.h"
#include "tests/server/fakes/serving_fixture.h"

namespace longshort::server::classify_image_test {

using ::testing::HasSubstr;

class ClassifyImageTest : public ServingFixture {
 protected:
  ClassifyImageTest() {
    auto scripted = std::make_unique<ScriptedClassifierEngine>();
    engine_ = scripted.get();
    std::map<std::string, core::ServedModel::Kind> models;
    models["images"] = ImageClassifier(std::move(scripted));
    models["texts"] = TextClassifier(std::make_unique<ScriptedClassifierEngine>());
    std::get<core::ServedLanguageModel>(models["speaker"]).engine = std::make_unique<ScriptedEngine>();
    Serve(RegistryOf(std::move(models)));
    request_.mutable_model()->set_name("images");
  }

  grpc::Status Call() {
    grpc::ClientContext context;
    return stub_->ClassifyImage(&context, request_, &response_);
  }

  // Does the work of the engine's pool: prepares the item and ends it.
  static void Prepare(const ScriptedClassifierEngine::Item& item, int likeliest) {
    const absl::StatusOr<models::ClassifierItem> prepared = std::get<core::ItemPreparation>(item.request.item)();
    item.listener->OnFinished(prepared.ok() ? ScoresFor(likeliest)
                                            : absl::StatusOr<core::ItemResult>(prepared.status()));
  }

  ScriptedClassifierEngine* engine_;
  v1::ClassifyImageRequest request_;
  v1::ClassifyImageResponse response_;
};

TEST_F(ClassifyImageTest, ResultsComeInTheOrderOfTheImagesAndErrorsStayWithTheirs) {
  request_.add_images()->set_encoded("abc");
  request_.add_images()->set_encoded("broken");
  request_.add_images();
  v1::ImageTensor& tensor = *request_.add_images()->mutable_tensor();
  tensor.set_height(1000);
  tensor.set_width(1000);
  tensor.set_uint8_values("rgb");
  std::thread engine_thread([this] {
    const auto items = engine_->TakeItems(3);  // the third image never reaches the engine
    Prepare(items[2], 2);
    Prepare(items[1], 0);
    Prepare(items[0], 1);
  });
  const grpc::Status status = Call();
  engine_thread.join();
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(response_.results_size(), 4);
  EXPECT_EQ(response_.results(0).classification().classes(0).label(), "dog");
  EXPECT_EQ(response_.results(1).error().code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(response_.results(1).error().message(), "images[1]: not an image");
  EXPECT_EQ(response_.results(2).error().message(),
            "images[2] is unset; it must have encoded, or a tensor with values");
  EXPECT_EQ(response_.results(3).classification().classes(0).index(), 2);
  EXPECT_EQ(response_.model().name(), "images");
}

TEST_F(ClassifyImageTest, TheEndOfAllImagesIsTheEndOfTheCallEvenIfNoneReachesTheEngine) {
  request_.add_images();
  EXPECT_TRUE(Call().ok());
  EXPECT_EQ(response_.results(0).error().code(), grpc::StatusCode::INVALID_ARGUMENT);
}

// An item must hold only the memory that it counts for, not the other images of its call.
TEST_F(ClassifyImageTest, AnImageIsReleasedBeforeTheOthersOfItsCallAreDecoded) {
  constexpr int64_t kBytes = 2'000'000;
  for (int i = 0; i < 2; ++i) request_.add_images()->set_encoded(std::string(kBytes, 'x'));
  std::thread engine_thread([&] {
    auto items = engine_->TakeItems(2);
    Prepare(items[0], 0);
    const int64_t before = core::LiveHeapBytes();
    items.erase(items.begin());
    EXPECT_LT(core::LiveHeapBytes(), before - kBytes / 2);
    Prepare(items[0], 0);
  });
  EXPECT_TRUE(Call().ok());
  engine_thread.join();
}

// The engine accepts all images of a call or none, and decides at the first image that it gets.
TEST_F(ClassifyImageTest, UnreadableImagesAreNotSubmittedToTheEngine) {
  request_.add_images();
  request_.add_images()->set_encoded("1");
  request_.add_images();
  request_.add_images()->set_encoded("2");
  std::vector<core::PositionInCall> parts;
  std::thread engine_thread([&] {
    for (const auto& item : engine_->TakeItems(2)) {
      parts.push_back(item.request.context.position_in_call);
      item.listener->OnFinished(ScoresFor(0));
    }
  });
  EXPECT_TRUE(Call().ok());
  engine_thread.join();
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(parts[i].index, static_cast<int64_t>(i));
    EXPECT_EQ(parts[i].count, 2);
    EXPECT_EQ(parts[i].share, 0.5);
  }
  EXPECT_TRUE(response_.results(0).has_error());
  EXPECT_TRUE(response_.results(1).has_classification());
  EXPECT_TRUE(response_.results(2).has_error());
  EXPECT_TRUE(response_.results(3).has_classification());
}

// 1, 3 and 2 million pixels at 20 ns; the last is a tensor.
TEST_F(ClassifyImageTest, EachImageIsDueAfterThoseOfItsCallBeforeIt) {
  request_.add_images()->set_encoded("1");
  request_.add_images()->set_encoded("333");
  v1::ImageTensor& tensor = *request_.add_images()->mutable_tensor();
  tensor.set_height(1000);
  tensor.set_width(2000);
  tensor.set_uint8_values("x");
  std::vector<absl::Duration> work;
  std::thread engine_thread([&] {
    for (const auto& item : engine_->TakeItems(3)) {
      work.push_back(item.request.work_until_prepared);
      item.listener->OnFinished(ScoresFor(0));
    }
  });
  EXPECT_TRUE(Call().ok());
  engine_thread.join();
  EXPECT_THAT(work, testing::ElementsAre(absl::Milliseconds(20), absl::Milliseconds(80), absl::Milliseconds(120)));
}

// 1,024 pixels take 20.48 us. An image that is ready within 50 us becomes an item at once.
TEST_F(ClassifyImageTest, AFewPixelsAreAnItemAtOnceAndMoreArePreparedByTheEngine) {
  for (int i = 0; i < 3; ++i) {
    v1::ImageTensor& tensor = *request_.add_images()->mutable_tensor();
    tensor.set_height(32);
    tensor.set_width(32);
    tensor.set_uint8_values(std::string(i + 1, 'x'));
  }
  std::vector<bool> ready;
  std::vector<float> values;
  std::thread engine_thread([&] {
    for (const auto& item : engine_->TakeItems(3)) {
      const auto* made = std::get_if<models::ClassifierItem>(&item.request.item);
      ready.push_back(made != nullptr);
      if (made != nullptr) values.push_back(std::get<models::ImageItem>(*made).values.front());
      item.listener->OnFinished(ScoresFor(0));
    }
  });
  EXPECT_TRUE(Call().ok());
  engine_thread.join();
  EXPECT_THAT(ready, testing::ElementsAre(true, true, false));
  EXPECT_THAT(values, testing::ElementsAre(1, 2));
}

TEST_F(ClassifyImageTest, FewPixelsWithAnErrorFailAloneWithTheirIndex) {
  request_.add_images()->mutable_tensor()->set_uint8_values("broken");
  EXPECT_TRUE(Call().ok());
  EXPECT_EQ(response_.results(0).error().code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(response_.results(0).error().message(), "images[0]: not an image");
}

TEST_F(ClassifyImageTest, AFullQueueRefusesTheWholeCall) {
  request_.add_images()->set_encoded("abc");
  request_.add_images()->set_encoded("abc");
  engine_->on_submit = [](int n) { return n == 1 ? absl::ResourceExhaustedError("full") : absl::OkStatus(); };
  std::thread engine_thread([this] {
    const auto items = engine_->TakeItems(1);
    while (!items[0].request.context.cancelled->load()) std::this_thread::yield();
    items[0].listener->OnFinished(absl::CancelledError("cancelled"));
  });
  const grpc::Status status = Call();
  engine_thread.join();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(ClassifyImageTest, AStoppingServerEndsTheCall) {
  request_.add_images()->set_encoded("abc");
  std::thread engine_thread(
      [this] { engine_->TakeItems(1)[0].listener->OnFinished(absl::UnavailableError("the server is stopping")); });
  const grpc::Status status = Call();
  engine_thread.join();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(ClassifyImageTest, AModelOfAnotherKindIsAFailedPrecondition) {
  request_.add_images()->set_encoded("abc");
  request_.mutable_model()->set_name("speaker");
  EXPECT_EQ(Call().error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  request_.mutable_model()->set_name("texts");
  const grpc::Status status = Call();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("texts"));
}

TEST_F(ClassifyImageTest, TheNumberOfImagesIsBounded) {
  EXPECT_EQ(Call().error_message(), "number of images is 0; it must be in [1, 64]");
  for (int i = 0; i < 65; ++i) request_.add_images()->set_encoded("abc");
  EXPECT_EQ(Call().error_message(), "number of images is 65; it must be in [1, 64]");
}

}  // namespace longshort::server::classify_image_test
