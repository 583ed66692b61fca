// One request of a stream: a call of its own, with its answers that are not written yet.
//
// Thread: any. The stream's mutex guards all members except the record. The stream calls the functions that it uses
// with the mutex held.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "open_inference/v2/service.pb.h"
#include "server/call/call.h"
#include "server/call/call_record.h"
#include "server/call/stream_events.h"
#include "server/calls/generate_call.h"
#include "server/fronts/open_inference/infer.h"

namespace longshort::server {

inline constexpr char kFinalAnswer[] = "triton_final_response";

// Converts a streamed generation to answers of the protocol: one for each piece of text and one for the end. In each,
// the parameter `triton_final_response` is true for the last one only.
//
// Not thread-safe: the stream's mutex guards it.
class GenerationAnswers final {
 public:
  // `empty_final_answer`: whether the last answer is empty except for that parameter.
  GenerationAnswers(AnswerForm form, bool empty_final_answer, int32_t completions, StreamStart start);

  void Push(StreamEvent event) { events_.Push(std::move(event)); }
  // See StreamEvents.
  size_t waiting_bytes() const { return events_.waiting_bytes(); }
  size_t waiting_memory() const { return events_.waiting_memory(); }
  // The next answer; nullopt if there is none now.
  std::optional<inference::ModelInferResponse> Pop();

 private:
  std::optional<inference::ModelInferResponse> ToAnswer(StreamEvent event);
  inference::ModelInferResponse PieceAnswer(int32_t index, const TextPiece& piece, bool final) const;

  const AnswerForm form_;
  const bool empty_final_answer_;
  const int32_t completions_;
  const StreamStart start_;
  StreamEvents events_;
  int32_t ended_ = 0;
  std::optional<CompletionEnd> last_end_;  // of the last completion; sent with the summary
  bool tell_final_ = false;                // an empty final answer is due
};

class StreamedRequest final : public GenerationSink, public std::enable_shared_from_this<StreamedRequest> {
 public:
  // Notifies the stream, with its mutex held, that the request has answers, or has ended.
  using NoteAnswers = std::function<void(const std::shared_ptr<StreamedRequest>& request)>;

  // Request `number` of the stream, with the stream's caller and deadline. Holds the stream.
  StreamedRequest(std::shared_ptr<Call> stream, int64_t number, NoteAnswers note_answers);

  // Reads the request. On an error the caller must End the request with it.
  absl::Status Plan(inference::ModelInferRequest request);
  // Whether the request has many answers. REQUIRES: Plan returned OK.
  bool is_generation() const;
  // Begins the work. REQUIRES: Plan returned OK. Errors: as for Plan.
  absl::Status Submit();
  void End(const absl::Status& status);

  void Cancel() { record_.Cancel(); }

  // The stream calls the next four functions with its mutex held. The analysis cannot see that it is stream_'s mutex.
  //
  // Whether the work has ended.
  bool ended() const {
    stream_->mutex().AssertHeld();
    return closed_.has_value();
  }
  // The next answer; nullopt if there is none now, or no further one: then the request is `finished`.
  std::optional<inference::ModelStreamInferResponse> Take();
  // Removes the remaining answers, because the client is gone.
  void RemoveAnswers();
  bool finished() const {
    stream_->mutex().AssertHeld();
    return finished_;
  }

  // Charges the client for the request, for as long as it exists. Errors: as core::Hold.
  absl::Status Hold();

  // Used by the stream: whether the request is in its list of requests with answers.
  bool noted = false;

 private:
  // GenerationSink:
  void Open(int32_t completions, StreamStart start) override;
  void Submitted(bool taken) override;
  void Push(StreamEvent event) override;
  void Close(const absl::Status& status) override;

  // Sets the only answer.
  void Answer(absl::StatusOr<inference::ModelInferResponse> answer);
  // Pauses the generation while much output waits for a slow reader.
  void SetPause() ABSL_EXCLUSIVE_LOCKS_REQUIRED(stream_->mutex());
  inference::ModelStreamInferResponse ErrorAnswer(const absl::Status& status) const;

  const std::shared_ptr<Call> stream_;
  const NoteAnswers note_answers_;
  CallRecord record_;
  Budget::Share memory_;
  std::string id_;
  std::string model_;

  std::optional<InferPlan> plan_;  // set by Plan, cleared by Submit
  std::optional<inference::ModelInferResponse> answer_ ABSL_GUARDED_BY(stream_->mutex());
  std::optional<GenerationAnswers> generation_ ABSL_GUARDED_BY(stream_->mutex());
  // False while a generation is open and not submitted; its events wait.
  bool submitted_ ABSL_GUARDED_BY(stream_->mutex()) = true;
  std::optional<absl::Status> closed_ ABSL_GUARDED_BY(stream_->mutex());
  bool finished_ ABSL_GUARDED_BY(stream_->mutex()) = false;
};

}  // namespace longshort::server
