// What the protocol tells of the server and its models.
#pragma once

#include <vector>

#include "open_inference/v2/service.pb.h"
#include "server/calls/model_description.h"

namespace longshort {

// `model_control`: whether clients may load and unload models.
inference::ServerMetadataResponse DescribeServer(bool model_control);

// `versions`: those that serve.
inference::ModelMetadataResponse ToMetadata(const ModelDescription& model, const std::vector<int64_t>& versions);
inference::ModelConfig ToConfig(const ModelDescription& model);
inference::ModelStatistics ToStatistics(const ServedModel& model);

}  // namespace longshort
