#include "clients/cpp/documents_in_hand.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "clients/cpp/item_failures.h"

namespace longshort {
namespace {

// What is read ahead, so that no server waits for a disk: some documents, or bytes. Reading goes on once half of them
// are taken.
constexpr size_t kMostAhead = 16;
constexpr size_t kMostBytesAhead = size_t{64} << 20;

// Puts the document into `request`. Errors: why it cannot be sent.
absl::Status PutDocument(absl::StatusOr<DocumentInputs> inputs, CheckDocument check, int64_t message_bytes,
                         v1::ScoreTextsRequest& request) {
  if (!inputs.ok()) return inputs.status();
  if (absl::Status fits = check(*inputs); !fits.ok()) return fits;
  *request.mutable_input() = std::move(inputs->first);
  if (inputs->second.has_value()) *request.mutable_second_input() = *std::move(inputs->second);
  const auto bytes = static_cast<int64_t>(request.ByteSizeLong());
  if (message_bytes == 0 || bytes <= message_bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("it takes a message of ", bytes, " bytes; the server takes at most ",
                                                 message_bytes, " (--max-message-bytes)"));
}

}  // namespace

DocumentsInHand::DocumentsInHand(DocumentSource& source, CheckDocument check, OnScored on_scored,
                                 const BulkLimits& limits, bool keeps)
    : source_(source), check_(check), on_scored_(on_scored), limits_(limits), keeps_(keeps) {
  reader_ = std::thread([this] { ReadAll(); });
}

DocumentsInHand::~DocumentsInHand() {
  Close();
  reader_.join();
}

bool DocumentsInHand::WaitForWork() {
  std::unique_lock lock(mutex_);
  work_.wait(lock, [this] { return closed_ || !takeable_.empty() || (all_read_ && documents_.empty()); });
  return !closed_ && !takeable_.empty();
}

bool DocumentsInHand::Take(Server server, v1::ScoreTextsRequest& request) {
  std::unique_lock lock(mutex_);
  const auto ended = [&] { return closed_ || stopped_.count(server) > 0; };
  work_.wait(lock, [&] { return ended() || !takeable_.empty() || all_read_; });
  if (ended() || takeable_.empty()) return false;
  const uint64_t id = *takeable_.begin();
  takeable_.erase(takeable_.begin());
  Document& document = *Find(id);
  takeable_bytes_ -= document.bytes;
  document.server = server;
  if (keeps_) {
    *request.mutable_input() = document.request.input();
    if (document.request.has_second_input()) *request.mutable_second_input() = document.request.second_input();
  } else {
    request.mutable_input()->Swap(document.request.mutable_input());
    if (document.request.has_second_input()) {
      request.mutable_second_input()->Swap(document.request.mutable_second_input());
    }
  }
  request.set_id(id);
  if (takeable_.size() <= kMostAhead / 2) room_.notify_one();
  return true;
}

void DocumentsInHand::Answer(Server server, v1::ScoreTextsResponse answer) {
  {
    const std::lock_guard lock(mutex_);
    Document* const document = Find(answer.id());
    if (document == nullptr || document->server != server || document->answer.has_value()) return;
    document->request.Clear();
    document->bytes = answer.SpaceUsedLong();
    document->answer = std::move(answer);
    held_bytes_ += document->bytes;
  }
  HandOn();
}

void DocumentsInHand::Refuse(Server server, uint64_t id) {
  const std::lock_guard lock(mutex_);
  const Document* const document = Find(id);
  if (document != nullptr && document->server == server && !document->answer.has_value()) MakeTakeable(id);
}

void DocumentsInHand::StopTaking(Server server) {
  const std::lock_guard lock(mutex_);
  stopped_.insert(server);
  work_.notify_all();
}

size_t DocumentsInHand::GiveBack(Server server) {
  const std::lock_guard lock(mutex_);
  stopped_.erase(server);
  size_t count = 0;
  for (uint64_t id = first_id_; id < first_id_ + documents_.size(); ++id) {
    const Document& document = *Find(id);
    if (document.server != server || document.answer.has_value()) continue;
    ++count;
    if (keeps_) MakeTakeable(id);
  }
  return count;
}

void DocumentsInHand::Close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  work_.notify_all();
  room_.notify_all();
}

bool DocumentsInHand::all_answered() {
  const std::lock_guard lock(mutex_);
  return all_read_ && documents_.empty();
}

void DocumentsInHand::ReadAll() {
  while (ReadOne()) {
    std::unique_lock lock(mutex_);
    const bool is_full = takeable_.size() >= kMostAhead || takeable_bytes_ >= kMostBytesAhead;
    room_.wait(lock, [&] {
      const bool has_room = !is_full || (takeable_.size() <= kMostAhead / 2 && takeable_bytes_ < kMostBytesAhead);
      return closed_ || (has_room && held_bytes_ < limits_.held_bytes);
    });
    if (closed_) return;
  }
  const std::lock_guard lock(mutex_);
  all_read_ = true;
  work_.notify_all();
}

bool DocumentsInHand::ReadOne() {
  std::optional<NamedDocument> document = source_.Next();
  if (!document.has_value()) return false;
  v1::ScoreTextsRequest request;
  const absl::Status status = PutDocument(std::move(document->inputs), check_, limits_.message_bytes, request);
  {
    const std::lock_guard lock(mutex_);
    const uint64_t id = first_id_ + documents_.size();
    documents_.emplace_back().name = std::move(document->name);
    if (status.ok()) {
      documents_.back().bytes = request.ByteSizeLong();
      documents_.back().request.Swap(&request);
      MakeTakeable(id);
    } else {
      *documents_.back().answer.emplace().mutable_error() = MakeItemError(status);
    }
  }
  if (!status.ok()) HandOn();
  return true;
}

DocumentsInHand::Document* DocumentsInHand::Find(uint64_t id) {
  return id - first_id_ < documents_.size() ? &documents_[id - first_id_] : nullptr;
}

void DocumentsInHand::MakeTakeable(uint64_t id) {
  Document& document = *Find(id);
  document.server = kNobody;
  takeable_.insert(id);
  takeable_bytes_ += document.bytes;
  work_.notify_all();
}

void DocumentsInHand::HandOn() {
  const std::lock_guard one_at_a_time(handing_on_);
  while (const std::optional<Document> document = TakeAnswered()) {
    if (!on_scored_(document->name, *document->answer)) Close();
  }
}

std::optional<DocumentsInHand::Document> DocumentsInHand::TakeAnswered() {
  const std::lock_guard lock(mutex_);
  if (closed_ || documents_.empty() || !documents_.front().answer.has_value()) return std::nullopt;
  Document document = std::move(documents_.front());
  documents_.pop_front();
  ++first_id_;
  held_bytes_ -= document.bytes;
  room_.notify_one();
  if (all_read_ && documents_.empty()) work_.notify_all();
  return document;
}

}  // namespace longshort
