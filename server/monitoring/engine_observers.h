// Listeners that turn what engines and stores of sessions tell into numbers, one for each, labelled with model
// and version (sessions, which versions may share, with the model), and failures into lines of the log too. Those of
// one version add up; one that ends takes back what it added to gauges, and the last one the version's series.
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

// Runs of the model are counted in `statistics`, too. `metrics` and `log` must outlive what is returned, which must
// outlive the engine or store.
std::unique_ptr<core::LanguageModelEngineObserver> ObserveEngine(ServerMetrics& metrics, Logger& log,
                                                                 const std::string& model, int64_t version,
                                                                 std::shared_ptr<core::ServingStatistics> statistics);
std::unique_ptr<core::ClassifierEngineObserver> ObserveClassifier(ServerMetrics& metrics, Logger& log,
                                                                  const std::string& model, int64_t version,
                                                                  std::shared_ptr<core::ServingStatistics> statistics);
std::unique_ptr<core::SessionObserver> ObserveSessions(ServerMetrics& metrics, const std::string& model);

}  // namespace longshort::server
