// Listeners that turn what engines and stores of sessions tell into numbers, one for each, labelled with the model's
// name, and failures into lines of the log too. Those of one name add up, and one that ends takes back what it added to
// gauges.
#pragma once

#include <memory>
#include <string>

#include "core/requests/classifier_engine.h"
#include "core/requests/language_model_engine.h"
#include "core/requests/serving_statistics.h"
#include "core/session/session_observer.h"
#include "server/log/logger.h"
#include "server/metrics/server_metrics.h"

namespace longshort {

// Runs of the model are counted in `statistics`, too. `metrics` and `log` must outlive what is returned, which must
// outlive the engine or store.
std::unique_ptr<LanguageModelEngineObserver> ObserveEngine(ServerMetrics& metrics, Logger& log,
                                                           const std::string& model,
                                                           std::shared_ptr<ServingStatistics> statistics);
std::unique_ptr<ClassifierEngineObserver> ObserveClassifier(ServerMetrics& metrics, Logger& log,
                                                            const std::string& model,
                                                            std::shared_ptr<ServingStatistics> statistics);
std::unique_ptr<SessionObserver> ObserveSessions(ServerMetrics& metrics, const std::string& model);

}  // namespace longshort
