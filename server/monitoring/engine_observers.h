// Observers that turn reports of engines and session stores into metrics, and failures also into log lines. Series
// have the labels model and version (sessions, which versions may share: model only). Several engines of a version add
// up. An engine that ends subtracts its part of the gauges. A version's series stay for kKeptAfterUnload after its last
// engine.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/requests/classifier_engine.h"
#include "core/requests/language_model_engine.h"
#include "core/requests/serving_statistics.h"
#include "core/session/session.h"
#include "server/monitoring/logger.h"
#include "server/monitoring/server_metrics.h"

namespace longshort::server {

// `statistics` also counts the model's runs. `metrics` and `log` must outlive the observer, which must outlive the
// engine or store.
std::unique_ptr<core::LanguageModelEngineObserver> ObserveEngine(ServerMetrics& metrics, Logger& log,
                                                                 const std::string& model, int64_t version,
                                                                 std::shared_ptr<core::ServingStatistics> statistics,
                                                                 int64_t workers);
std::unique_ptr<core::ClassifierEngineObserver> ObserveClassifier(ServerMetrics& metrics, Logger& log,
                                                                  const std::string& model, int64_t version,
                                                                  std::shared_ptr<core::ServingStatistics> statistics,
                                                                  int64_t workers);
std::unique_ptr<core::SessionObserver> ObserveSessions(ServerMetrics& metrics, const std::string& model);

}  // namespace longshort::server
