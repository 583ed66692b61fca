// longshort-echo-server: what gRPC itself costs. The calls ScoreText and ClassifyImage of longshort.v1, answered at
// once with what the identity model would say; nothing else of the server is in it.
//
//   longshort-echo-server [--from-another-thread] PORT_FILE
//
// Writes {"grpc": port} to PORT_FILE and serves until SIGTERM or SIGINT. It answers on gRPC's own thread; with
// --from-another-thread one thread sends all answers, as any server must whose model does not run on gRPC's threads.

#include <grpcpp/grpcpp.h>
#include <signal.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

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

// Finishes calls, in a thread of its own.
class Finisher {
 public:
  Finisher() : thread_(&Finisher::Work, this) {}
  ~Finisher() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  void Finish(grpc::ServerUnaryReactor* call) {
    {
      const std::lock_guard lock(mutex_);
      calls_.push_back(call);
    }
    changed_.notify_all();
  }

 private:
  void Work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return stop_ || !calls_.empty(); });
      if (calls_.empty()) return;
      std::vector<grpc::ServerUnaryReactor*> taken;
      taken.swap(calls_);
      lock.unlock();
      for (grpc::ServerUnaryReactor* call : taken) call->Finish(grpc::Status::OK);
      lock.lock();
    }
  }

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::vector<grpc::ServerUnaryReactor*> calls_;
  bool stop_ = false;
  std::thread thread_;  // last: it uses the others
};

class EchoService final : public v1::Inference::CallbackService {
 public:
  // With a null `finisher` calls are finished where they come. It must outlive the service.
  explicit EchoService(Finisher* finisher) : finisher_(finisher) {}

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
  grpc::ServerUnaryReactor* FinishOk(grpc::CallbackServerContext& context) const {
    grpc::ServerUnaryReactor* const reactor = context.DefaultReactor();
    if (finisher_ != nullptr) {
      finisher_->Finish(reactor);
    } else {
      reactor->Finish(grpc::Status::OK);
    }
    return reactor;
  }

  Finisher* const finisher_;
};

int Serve(const std::string& port_file, bool from_another_thread) {
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);  // before gRPC's threads, which inherit it

  const auto finisher = from_another_thread ? std::make_unique<Finisher>() : nullptr;
  EchoService service(finisher.get());
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
  const bool from_another_thread = argc == 3 && std::strcmp(argv[1], "--from-another-thread") == 0;
  if (argc == 2 || from_another_thread) return longshort::load::Serve(argv[argc - 1], from_another_thread);
  std::fputs("Usage: longshort-echo-server [--from-another-thread] PORT_FILE\n", stderr);
  return 1;
}
