// The parts of the server that every call uses, whichever protocol it came by. The references outlive all calls.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/time/time.h"
#include "base/budget.h"
#include "core/registry/model_registry.h"
#include "core/schedule/fair_pool.h"
#include "server/access/access_control.h"
#include "server/call/call_gate.h"
#include "server/call/call_memory.h"
#include "server/call/delivery_threads.h"
#include "server/call/recent_clients.h"
#include "server/calls/request_limits.h"
#include "server/model_control/model_manager.h"
#include "server/monitoring/load_report.h"
#include "server/monitoring/logger.h"
#include "server/monitoring/server_metrics.h"
#include "server/monitoring/tracer.h"

namespace longshort::server {

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
  // One of so many successful calls has a line in the log; 0: none. Every failed call of a known caller has one.
  int64_t log_requests = 1;
  // Whether clients may load and unload models.
  bool model_control = false;
  SessionTransfers session_transfers = {};
  // It knows admitted calls, except those that observe the server.
  std::shared_ptr<RecentClients> clients = std::make_shared<RecentClients>();
  // Bytes of calls, and of their messages while these are read (server/call/call.h).
  std::shared_ptr<ClientBudgets> message_memory = MessageBudgets(int64_t{256} << 20);
  // The same of calls that observe the server.
  std::shared_ptr<ClientBudgets> probe_memory = MessageBudgets(int64_t{64} << 20);
  std::shared_ptr<UnreadAnswers> answers = std::make_shared<UnreadAnswers>(
      AnswerBudget(int64_t{256} << 20), message_memory->all(), slow_reader_timeout, deliveries.Next());
  // Bytes of connections without their calls.
  std::shared_ptr<Budget> connection_memory = ConnectionBudget(int64_t{256} << 20);
  // Null without authentication: every call is allowed.
  const AccessControl* access = nullptr;
  // Whether, without authentication, x-client-id names the client: a proxy sets it. Otherwise its address does.
  bool trusts_client_ids = false;
  // The load reported with every answer; null: none.
  LoadReport* load_report = nullptr;
  // Records traces of calls; null: none.
  Tracer* tracer = nullptr;
  // Reads large messages, and encodes large answers. Last: its tasks use the other members.
  std::shared_ptr<core::FairPool> work = core::FairPool::Create(1).value();
};

}  // namespace longshort::server
