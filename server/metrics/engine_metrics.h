// Listeners that turn what engines and stores of sessions tell into numbers, one for each, labelled with the model's
// name. Those of one name add up, and one that ends takes back what it added to gauges.
#pragma once

#include <memory>
#include <string>

#include "core/engine/classification_engine.h"
#include "core/engine/engine.h"
#include "core/session/session_observer.h"
#include "server/metrics/metric_families.h"

namespace longshort {

// `families` must outlive what is returned.
std::unique_ptr<EngineObserver> ObserveEngine(MetricFamilies& families, const std::string& model);
std::unique_ptr<ClassificationObserver> ObserveClassifier(MetricFamilies& families, const std::string& model);
std::unique_ptr<SessionObserver> ObserveSessions(MetricFamilies& families, const std::string& model);

}  // namespace longshort
