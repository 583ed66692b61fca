// The protocol's information about the server and its models, over a real connection.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/server/fronts/open_inference/open_inference_fixture.h"

namespace longshort::server::service_test {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class ServiceTest : public OpenInferenceFixture {
 protected:
  template <typename Request, typename Response>
  using Method = grpc::Status (inference::GRPCInferenceService::Stub::*)(grpc::ClientContext*, const Request&,
                                                                         Response*);
  template <typename Request, typename Response>
  Response Ask(Method<Request, Response> method, const Request& request) {
    Response response;
    last_ = Try(method, request, &response);
    EXPECT_TRUE(last_.ok()) << last_.error_message();
    return response;
  }
  template <typename Request, typename Response>
  grpc::Status Try(Method<Request, Response> method, const Request& request, Response* response) {
    grpc::ClientContext context;
    return ((*open_stub_).*method)(&context, request, response);
  }

  grpc::Status last_;
};

using Stub = inference::GRPCInferenceService::Stub;

TEST_F(ServiceTest, AStoppingServerLivesAndIsNotReady) {
  inference::ModelReadyRequest model;
  model.set_name("texts");
  EXPECT_TRUE(Ask(&Stub::ServerReady, inference::ServerReadyRequest()).ready());
  EXPECT_TRUE(Ask(&Stub::ModelReady, model).ready());
  model.set_version("2");
  EXPECT_FALSE(Ask(&Stub::ModelReady, model).ready());
  model.set_version("");
  gate_.Close();
  EXPECT_TRUE(Ask(&Stub::ServerLive, inference::ServerLiveRequest()).live());
  EXPECT_FALSE(Ask(&Stub::ServerReady, inference::ServerReadyRequest()).ready());
  EXPECT_FALSE(Ask(&Stub::ModelReady, model).ready());
  inference::ServerMetadataResponse metadata;
  EXPECT_EQ(Try(&Stub::ServerMetadata, inference::ServerMetadataRequest(), &metadata).error_code(),
            grpc::StatusCode::UNAVAILABLE);
}

TEST_F(ServiceTest, ListsItsExtensions) {
  const auto extensions = Ask(&Stub::ServerMetadata, inference::ServerMetadataRequest()).extensions();
  EXPECT_THAT(extensions, Contains("classification"));
  EXPECT_THAT(extensions, Not(Contains("model_repository"))) << "without --model-control";
  EXPECT_THAT(extensions, Not(Contains("sequence")));
  environment_->model_control = true;
  EXPECT_THAT(Ask(&Stub::ServerMetadata, inference::ServerMetadataRequest()).extensions(),
              Contains("model_repository"));
}

TEST_F(ServiceTest, MetadataAndConfigurationHaveTheSameTensors) {
  inference::ModelMetadataRequest metadata_of;
  inference::ModelConfigRequest config_of;
  for (const char* name : {"texts", "pairs", "images", "speaker"}) {
    metadata_of.set_name(name);
    config_of.set_name(name);
    const auto metadata = Ask(&Stub::ModelMetadata, metadata_of);
    const auto config = Ask(&Stub::ModelConfig, config_of).config();
    const int batch = config.max_batch_size() > 0 ? 1 : 0;
    EXPECT_EQ(batch, std::string(name) == "speaker" ? 0 : 1);
    EXPECT_EQ(config.model_transaction_policy().decoupled(), std::string(name) == "speaker");
    ASSERT_EQ(metadata.inputs_size(), config.input_size());
    ASSERT_EQ(metadata.outputs_size(), config.output_size());
    for (int i = 0; i < metadata.inputs_size(); ++i) {
      EXPECT_EQ(metadata.inputs(i).name(), config.input(i).name());
      EXPECT_EQ(metadata.inputs(i).datatype(), "BYTES");
      EXPECT_EQ(config.input(i).data_type(), inference::TYPE_STRING);
      EXPECT_EQ(metadata.inputs(i).shape_size(), config.input(i).dims_size() + batch);
    }
    for (int i = 0; i < metadata.outputs_size(); ++i) EXPECT_EQ(metadata.outputs(i).name(), config.output(i).name());
    EXPECT_THAT(metadata.versions(), ElementsAre("1"));
  }
}

TEST_F(ServiceTest, StatisticsCountTheResultsOfRequests) {
  ASSERT_TRUE(InferWith(*texts_, 2, TypedRequest("texts", "document", {"ab", "c"})).ok());
  EXPECT_FALSE(Infer(TypedRequest("texts", "document", {"far too long"})).ok());
  EXPECT_FALSE(Infer(TypedRequest("texts", "prompt", {"a"})).ok());
  inference::ModelStatisticsRequest of_texts;
  of_texts.set_name("texts");
  const auto answer = Ask(&Stub::ModelStatistics, of_texts);
  ASSERT_EQ(answer.model_stats_size(), 1);
  const inference::ModelStatistics& statistics = answer.model_stats(0);
  EXPECT_EQ(statistics.version(), "1");
  EXPECT_EQ(statistics.inference_count(), 2) << "documents";
  EXPECT_GT(statistics.last_inference(), 1'600'000'000'000);
  const inference::InferStatistics& requests = statistics.inference_stats();
  EXPECT_EQ(requests.success().count(), 1);
  EXPECT_EQ(requests.fail().count(), 1) << "a request for an unknown model does not count";
  EXPECT_EQ(requests.queue().count(), 1);
  EXPECT_EQ(requests.success().ns(), requests.queue().ns() + requests.compute_input().ns() +
                                         requests.compute_infer().ns() + requests.compute_output().ns());
  EXPECT_EQ(Ask(&Stub::ModelStatistics, inference::ModelStatisticsRequest()).model_stats_size(), 5);
  of_texts.set_name("unknown");
  inference::ModelStatisticsResponse none;
  EXPECT_EQ(Try(&Stub::ModelStatistics, of_texts, &none).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(ServiceTest, TheRepositoryIsChangedWithModelControlOnly) {
  inference::RepositoryModelLoadRequest load;
  load.set_model_name("texts");
  inference::RepositoryModelLoadResponse loaded;
  EXPECT_EQ(Try(&Stub::RepositoryModelLoad, load, &loaded).error_code(), grpc::StatusCode::PERMISSION_DENIED);
  environment_->model_control = true;
  (*load.mutable_parameters())["config"].set_string_param("{}");
  const grpc::Status status = Try(&Stub::RepositoryModelLoad, load, &loaded);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("parameters.config is set"));
}

TEST_F(ServiceTest, UnimplementedRpcsSayWhy) {
  EXPECT_EQ(Ask(&Stub::SystemSharedMemoryStatus, inference::SystemSharedMemoryStatusRequest()).ByteSizeLong(), 0);
  EXPECT_EQ(Ask(&Stub::CudaSharedMemoryStatus, inference::CudaSharedMemoryStatusRequest()).ByteSizeLong(), 0);
  inference::SystemSharedMemoryRegisterResponse registered;
  grpc::Status status =
      Try(&Stub::SystemSharedMemoryRegister, inference::SystemSharedMemoryRegisterRequest(), &registered);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_THAT(status.error_message(), HasSubstr("shared memory is not supported"));
  inference::LogSettingsResponse settings;
  status = Try(&Stub::LogSettings, inference::LogSettingsRequest(), &settings);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_THAT(status.error_message(), HasSubstr("log settings are options of the server"));
}

}  // namespace longshort::server::service_test
