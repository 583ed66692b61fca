// A streamed generation as answers of the protocol: one for each piece of text, and one that tells how it ended. Of
// each the parameter `triton_final_response` says whether it is the last.
//
// Thread: none of its own; the stream's mutex guards it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "open_inference/v2/service.pb.h"
#include "server/admission/stream_events.h"
#include "server/calls/generate_call.h"
#include "server/open_inference_v2/infer_answer.h"
#include "server/open_inference_v2/infer_plan.h"

namespace longshort {

inline constexpr char kFinalAnswer[] = "triton_final_response";

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
  std::optional<CompletionEnd> last_end_;  // of the last completion: told with the summary
  bool tell_final_ = false;                // by an answer of its own
};

}  // namespace longshort
