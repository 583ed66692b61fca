// The gRPC services of the contract: which function answers which RPC.
#pragma once

#include "longshort/v1/inference.grpc.pb.h"
#include "longshort/v1/models.grpc.pb.h"
#include "longshort/v1/sessions.grpc.pb.h"
#include "server/admission/call_environment.h"

namespace longshort {

// Every method in the callback form that takes bytes (see server/rpc/message_bytes.h).
using RawInferenceService = v1::Inference::WithRawCallbackMethod_ScoreText<
    v1::Inference::WithRawCallbackMethod_ScoreTexts<v1::Inference::WithRawCallbackMethod_ClassifyImage<
        v1::Inference::WithRawCallbackMethod_Generate<v1::Inference::WithRawCallbackMethod_GenerateStream<
            v1::Inference::WithRawCallbackMethod_Tokenize<v1::Inference::Service>>>>>>;
using RawModelsService = v1::Models::WithRawCallbackMethod_ListModels<v1::Models::WithRawCallbackMethod_GetModel<
    v1::Models::WithRawCallbackMethod_LoadModel<v1::Models::WithRawCallbackMethod_UnloadModel<v1::Models::Service>>>>;

using RawSessionsService = v1::Sessions::WithRawCallbackMethod_ListSessions<
    v1::Sessions::WithRawCallbackMethod_CloseSession<v1::Sessions::WithRawCallbackMethod_ExportSession<
        v1::Sessions::WithRawCallbackMethod_ImportSession<v1::Sessions::Service>>>>;

class InferenceService final : public RawInferenceService {
 public:
  // `environment` must outlive the service.
  explicit InferenceService(const CallEnvironment& environment) : environment_(environment) {}

  grpc::ServerUnaryReactor* ScoreText(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                      grpc::ByteBuffer* response) override;
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* ScoreTexts(
      grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* ClassifyImage(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                          grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* Generate(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                     grpc::ByteBuffer* response) override;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* GenerateStream(grpc::CallbackServerContext* context,
                                                             const grpc::ByteBuffer* request) override;
  grpc::ServerUnaryReactor* Tokenize(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                     grpc::ByteBuffer* response) override;

 private:
  const CallEnvironment& environment_;
};

class ModelsService final : public RawModelsService {
 public:
  // `environment` must outlive the service.
  explicit ModelsService(const CallEnvironment& environment) : environment_(environment) {}

  grpc::ServerUnaryReactor* ListModels(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* GetModel(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                     grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* LoadModel(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                      grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* UnloadModel(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                        grpc::ByteBuffer* response) override;

 private:
  const CallEnvironment& environment_;
};

class SessionsService final : public RawSessionsService {
 public:
  // `environment` must outlive the service.
  explicit SessionsService(const CallEnvironment& environment) : environment_(environment) {}

  grpc::ServerUnaryReactor* ListSessions(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                         grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* CloseSession(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                         grpc::ByteBuffer* response) override;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* ExportSession(grpc::CallbackServerContext* context,
                                                            const grpc::ByteBuffer* request) override;
  grpc::ServerReadReactor<grpc::ByteBuffer>* ImportSession(grpc::CallbackServerContext* context,
                                                           grpc::ByteBuffer* response) override;

 private:
  const CallEnvironment& environment_;
};

}  // namespace longshort
