// The parts of the server that every call uses, whichever protocol it came by. The references outlive all calls.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/time/time.h"
#include "base/budget.h"
#include "core/registry/model_registry.h"
#include "server/access/access_control.h"
#include "server/admission/call_gate.h"
#include "server/admission/delivery_threads.h"
#include "server/calls/request_limits.h"
#include "server/model_control/model_manager.h"
#include "server/monitoring/load_report.h"
#include "server/monitoring/logger.h"
#include "server/monitoring/server_metrics.h"
#include "server/monitoring/tracer.h"
#include "server/sessions/transfer_budget.h"

namespace longshort::server {

inline std::shared_ptr<Budget> MessageBudget(int64_t bytes) {
  return std::make_shared<Budget>(bytes, Budget::Names{.holders = "the messages that are being read", .unit = "bytes"});
}

struct CallEnvironment {
  const core::ModelRegistry& models;
  ModelManager& manager;
  ServerMetrics& metrics;
  Logger& log;
  CallGate& gate;
  DeliveryThreads& deliveries;
  RequestLimits limits;
  // A stream that was silent for this long sends a keepalive.
  absl::Duration keepalive_interval;
  // A client that reads nothing of a stream for this long, while a message is pending, is cancelled.
  absl::Duration slow_reader_timeout;
  // One of so many successful calls has a line in the log; 0: none. Every failed call has one.
  int64_t log_requests = 1;
  // Whether clients may load and unload models.
  bool model_control = false;
  SessionTransfers session_transfers = {};
  // Bytes of messages that are being read (server/rpc/request_message.h).
  std::shared_ptr<Budget> message_memory = MessageBudget(int64_t{256} << 20);
  // Bytes of answers that clients have not read yet and that have no timer (server/rpc/call.h).
  std::shared_ptr<std::atomic<int64_t>> unwatched_answer_bytes = std::make_shared<std::atomic<int64_t>>(0);
  // Null without authentication: every call is allowed, and clients name themselves.
  const AccessControl* access = nullptr;
  // The load reported with every answer; null: none.
  LoadReport* load_report = nullptr;
  // Records traces of calls; null: none.
  Tracer* tracer = nullptr;
};

}  // namespace longshort::server
