// The documents of a run between their source and their answers, shared by the servers that answer them.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "clients/cpp/document_source.h"
#include "longshort/v1/inference.pb.h"

namespace longshort {

// Checks a document before it is sent, and may cut it. A status that is not OK becomes the document's error.
using CheckDocument = absl::FunctionRef<absl::Status(DocumentInputs&)>;

// An answer holds the score, the classification or the error; its id means nothing. Returns whether there shall be
// more: otherwise the run is closed.
using OnScored = absl::FunctionRef<bool(const std::string& name, const v1::ScoreTextsResponse& answer)>;

struct BulkLimits {
  // Of the message of one document, which is refused beyond; 0 is no limit.
  int64_t message_bytes = 0;
  // Of answers that wait for those before them: then no more documents are read.
  size_t held_bytes = size_t{256} << 20;
};

// Documents are read ahead in a thread of their own, taken by servers in the source's order, and handed on in that
// order once they are answered: an answer that comes early waits for those before it. What a server has taken and not
// answered can be given back, and is then the next to be taken. Each document is handed on once.
//
// Thread: any; `on_scored` is called in one thread at a time.
class DocumentsInHand final {
 public:
  // A server, by its place among the servers.
  using Server = int;

  // `keeps`: what is taken may be given back, and so is kept until it is answered.
  DocumentsInHand(DocumentSource& source, CheckDocument check, OnScored on_scored, const BulkLimits& limits,
                  bool keeps);
  // Waits for the source, if it is being read.
  ~DocumentsInHand();
  DocumentsInHand(const DocumentsInHand&) = delete;
  DocumentsInHand& operator=(const DocumentsInHand&) = delete;

  // Waits until there is a document to take. False if all are answered, or after Close.
  bool WaitForWork();
  // Puts the next document into `request`. Waits for it to be read. False if all that were read are taken and there are
  // no more, after StopTaking or Close.
  bool Take(Server server, v1::ScoreTextsRequest& request);
  // Hands on the first documents, as far as they are answered now. An answer to what the server does not have is passed
  // over.
  void Answer(Server server, v1::ScoreTextsResponse answer);
  // The server did not take this one document, whose id is `id`, and is to take it again, or another server.
  void Refuse(Server server, uint64_t id);
  // Ends a Take of this server, and those after it until GiveBack.
  void StopTaking(Server server);
  // What the server has is for others, or for its next stream. Returns how many documents that were. REQUIRES: `keeps`,
  // if there are any that shall be taken again; otherwise they are left unanswered.
  size_t GiveBack(Server server);
  // Nothing is read, taken or handed on any more.
  void Close();

  // Whether every document was handed on.
  bool all_answered();

 private:
  static constexpr Server kNobody = -1;

  struct Document {
    std::string name;
    v1::ScoreTextsRequest request;  // its inputs, as long as they may be wanted
    Server server = kNobody;        // which has it
    std::optional<v1::ScoreTextsResponse> answer;
    size_t bytes = 0;  // of the request before it is taken, of the answer behind
  };

  void ReadAll();
  // Whether there was one more.
  bool ReadOne();
  // Of a document in documents_; nullptr for others. REQUIRES: mutex_ is held.
  Document* Find(uint64_t id);
  void MakeTakeable(uint64_t id);  // REQUIRES: mutex_ is held
  void HandOn();
  std::optional<Document> TakeAnswered();

  DocumentSource& source_;
  const CheckDocument check_;
  const OnScored on_scored_;
  const BulkLimits limits_;
  const bool keeps_;
  std::mutex handing_on_;  // held before mutex_

  std::mutex mutex_;              // guards what follows
  std::condition_variable work_;  // there is something to take, or to give up
  std::condition_variable room_;  // there is room to read more
  std::deque<Document> documents_;
  uint64_t first_id_ = 0;  // of the front
  std::set<uint64_t> takeable_;
  std::set<Server> stopped_;
  size_t takeable_bytes_ = 0;
  size_t held_bytes_ = 0;
  bool all_read_ = false;
  bool closed_ = false;

  std::thread reader_;
};

}  // namespace longshort
