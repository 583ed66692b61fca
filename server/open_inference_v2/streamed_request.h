// One request of a stream: a call of its own, with its answers as far as the stream has not taken them.
//
// Thread: any. The stream's mutex guards all of it but the record; what the stream asks comes with the mutex held.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "open_inference/v2/service.pb.h"
#include "server/admission/call_record.h"
#include "server/admission/stream_events.h"
#include "server/calls/generate_call.h"
#include "server/open_inference_v2/infer_answer.h"
#include "server/open_inference_v2/infer_plan.h"
#include "server/rpc/call.h"

namespace longshort::server {

inline constexpr char kFinalAnswer[] = "triton_final_response";

// A streamed generation as answers of the protocol: one for each piece of text, and one for the end. In
// each, the parameter `triton_final_response` says whether it is the last.
//
// Not thread-safe: the stream's mutex guards it.
class GenerationAnswers final {
 public:
  // `empty_final_answer`: the last answer has nothing but that it is the last.
  GenerationAnswers(AnswerForm form, bool empty_final_answer, int32_t completions, StreamStart start);

  void Push(StreamEvent event) { events_.Push(std::move(event)); }
  // Of the pieces that wait.
  size_t waiting_bytes() const { return events_.waiting_bytes(); }
  // The next answer. None if there is nothing to say now.
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
  std::optional<CompletionEnd> last_end_;  // of the last completion: sent with the summary
  bool tell_final_ = false;                // by an answer of its own
};

class StreamedRequest final : public GenerationSink, public std::enable_shared_from_this<StreamedRequest> {
 public:
  // Notifies the stream, with its mutex held, that the request has answers, or has ended.
  using NoteAnswers = std::function<void(const std::shared_ptr<StreamedRequest>& request)>;

  // The stream's `number`-th request, of the stream's caller and with its deadline. Holds the stream.
  StreamedRequest(std::shared_ptr<Call> stream, int64_t number, NoteAnswers note_answers);

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

  const std::shared_ptr<Call> stream_;
  const NoteAnswers note_answers_;
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

}  // namespace longshort::server
