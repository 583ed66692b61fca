// longshort-echo-server: what gRPC itself costs. The calls ScoreText and ClassifyImage of longshort.v1, answered at
// once with what the identity model would say; nothing else of the server is in it.
//
//   longshort-echo-server PORT_FILE      writes {"grpc": port} there; serves until SIGTERM or SIGINT

#include <grpcpp/grpcpp.h>
#include <signal.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>

#include "longshort/v1/inference.grpc.pb.h"

namespace longshort::load {
namespace {

// An answer with as many fields as the identity model's.
void FillIn(v1::Classification& classification) {
  for (int index = 0; index < 2; ++index) {
    v1::ClassProbability& one = *classification.add_classes();
    one.set_index(index);
    one.set_label(index == 0 ? "even" : "odd");
    one.set_probability(0.5F);
  }
  classification.mutable_timings()->set_queue_seconds(1e-6);
  classification.mutable_timings()->set_run_seconds(1e-6);
}

class EchoService final : public v1::Inference::CallbackService {
 public:
  grpc::ServerUnaryReactor* ScoreText(grpc::CallbackServerContext* context, const v1::ScoreTextRequest* request,
                                      v1::ScoreTextResponse* response) override {
    for (const v1::Input& input : request->inputs()) {
      v1::TextClassification& one = *response->add_classifications();
      FillIn(*one.mutable_classification());
      one.add_documents()->set_token_count(static_cast<int64_t>(input.text().size()));
      response->mutable_usage()->set_prompt_tokens(static_cast<int64_t>(input.text().size()));
    }
    *response->mutable_model() = request->model();
    return FinishOk(*context);
  }

  grpc::ServerUnaryReactor* ClassifyImage(grpc::CallbackServerContext* context, const v1::ClassifyImageRequest* request,
                                          v1::ClassifyImageResponse* response) override {
    for (int i = 0; i < request->images_size(); ++i) FillIn(*response->add_results()->mutable_classification());
    *response->mutable_model() = request->model();
    return FinishOk(*context);
  }

 private:
  static grpc::ServerUnaryReactor* FinishOk(grpc::CallbackServerContext& context) {
    grpc::ServerUnaryReactor* const reactor = context.DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
};

int Serve(const std::string& port_file) {
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);  // before gRPC's threads, which inherit it

  EchoService service;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  std::ofstream file(port_file);
  file << "{\"grpc\": " << port << "}\n";
  file.close();
  if (server == nullptr || port == 0 || !file) {
    std::fprintf(stderr, "longshort-echo-server: cannot serve, or cannot write %s\n", port_file.c_str());
    return 1;
  }
  int signal = 0;
  sigwait(&ends, &signal);
  server->Shutdown(std::chrono::system_clock::now());
  return 0;
}

}  // namespace
}  // namespace longshort::load

int main(int argc, char** argv) {
  if (argc == 2) return longshort::load::Serve(argv[1]);
  std::fputs("Usage: longshort-echo-server PORT_FILE\n", stderr);
  return 1;
}
