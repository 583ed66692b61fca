// Listeners that turn what engines and stores of sessions tell into numbers, one for each, labelled with the model's
// name, and failures into lines of the log too. Those of one name add up, and one that ends takes back what it added to
// gauges.
#pragma once

#include <memory>
#include <string>

#include "core/requests/classifier_engine.h"
#include "core/requests/language_model_engine.h"
#include "core/session/session_observer.h"
#include "server/log/logger.h"
#include "server/metrics/metric_families.h"

namespace longshort {

// `families` and `log` must outlive what is returned.
std::unique_ptr<LanguageModelEngineObserver> ObserveEngine(MetricFamilies& families, Logger& log,
                                                           const std::string& model);
std::unique_ptr<ClassifierEngineObserver> ObserveClassifier(MetricFamilies& families, Logger& log,
                                                            const std::string& model);
std::unique_ptr<SessionObserver> ObserveSessions(MetricFamilies& families, const std::string& model);

}  // namespace longshort
