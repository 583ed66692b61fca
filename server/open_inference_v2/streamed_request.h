// One request of a stream: a call of its own, with its answers as far as the stream has not taken them.
//
// Thread: any. The stream's mutex guards all of it but the record; what the stream asks comes with the mutex held.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "open_inference/v2/service.pb.h"
#include "server/admission/call_record.h"
#include "server/admission/generation_sink.h"
#include "server/open_inference_v2/generation_answers.h"
#include "server/open_inference_v2/infer_plan.h"

namespace longshort {

class StreamedRequest final : public GenerationSink, public std::enable_shared_from_this<StreamedRequest> {
 public:
  // The stream.
  class Owner {
   public:
    virtual std::mutex& mutex() = 0;
    // The request has something to say, or has ended. With the mutex held.
    virtual void NoteAnswers(const std::shared_ptr<StreamedRequest>& request) = 0;
    // Has what was noted written: by this thread, or, with the mutex held, by one that has time for it.
    virtual void Advance() = 0;
    virtual void AdvanceLater() = 0;

   protected:
    ~Owner() = default;
  };

  // The stream's `number`-th request, of the stream's caller and with its deadline.
  StreamedRequest(std::shared_ptr<Owner> owner, const CallRecord& stream, int64_t number);

  // What the request asks for. Errors: why it asks for nothing; then it is to be ended with that.
  absl::Status Plan(inference::ModelInferRequest request);
  // Whether it has many answers. After Plan was OK.
  bool is_generation() const;
  // Begins the work. After Plan was OK. Errors: as Plan's.
  absl::Status Submit();
  void End(const absl::Status& status);

  void Cancel() { record_.Cancel(); }

  // Whether the work is over.
  bool ended() const { return closed_.has_value(); }
  // The next answer. None if there is nothing to say now, or ever: then it is `finished`.
  std::optional<inference::ModelStreamInferResponse> Take();
  // Nobody hears any more what there is to say.
  void Drop();
  bool finished() const { return finished_; }

  // For the stream: whether it is in its list of those that have something to say.
  bool noted = false;

 private:
  // Of GenerationSink.
  void Open(int32_t completions, StreamStart start) override;
  void Submitted(bool taken) override;
  void Push(StreamEvent event) override;
  void Close(const absl::Status& status) override;

  // The only answer.
  void Answer(absl::StatusOr<inference::ModelInferResponse> answer);
  // While much waits for a slow reader, a generation does not go on. With the mutex held.
  void SetPause();
  inference::ModelStreamInferResponse ErrorAnswer(const absl::Status& status) const;

  const std::shared_ptr<Owner> owner_;
  CallRecord record_;
  std::string id_;
  std::string model_;

  std::optional<InferPlan> plan_;  // from Plan to Submit
  std::optional<inference::ModelInferResponse> answer_;
  std::optional<GenerationAnswers> generation_;
  bool submitted_ = true;  // false while what a generation says waits for it
  std::optional<absl::Status> closed_;
  bool finished_ = false;
};

}  // namespace longshort
