// A language model that is on several devices: one model on each, of the same weights.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/model.h"

namespace longshort {

// Makes replicas on any of its devices. Whatever else it is asked, the model of the first device answers.
class PlacedLanguageModel final : public LanguageModel {
 public:
  struct Place {
    WorkerDevice device;
    std::unique_ptr<LanguageModel> model;
  };

  // REQUIRES: at least one place, each on another device.
  explicit PlacedLanguageModel(std::vector<Place> places) : places_(std::move(places)) {}

  const LanguageModelInfo& info() const override { return first().info(); }
  absl::StatusOr<std::unique_ptr<LanguageModel>> Replicate(const WorkerDevice& device) const override;
  const LanguageModel& On(const WorkerDevice& device) const override;
  CachePages PageBytes() const override { return first().PageBytes(); }
  int64_t WorkspaceBytes() const override { return first().WorkspaceBytes(); }
  absl::Status AllocateCache(const CachePages& pages) override { return first().AllocateCache(pages); }
  absl::StatusOr<StepResult> Step(absl::Span<const Slice> slices) override { return first().Step(slices); }
  void Rest() override { first().Rest(); }
  absl::Status CopyPage(PageKind kind, PageId from, PageId to) override { return first().CopyPage(kind, from, to); }
  std::string CacheLayout() const override { return first().CacheLayout(); }
  absl::StatusOr<std::string> ReadPage(PageKind kind, PageId page, const PageRows& rows) const override {
    return first().ReadPage(kind, page, rows);
  }
  absl::Status WritePage(PageKind kind, PageId page, std::string_view bytes) override {
    return first().WritePage(kind, page, bytes);
  }

 private:
  LanguageModel& first() const { return *places_.front().model; }
  // Null if there is none on this device.
  const LanguageModel* Find(const WorkerDevice& device) const;

  std::vector<Place> places_;
};

}  // namespace longshort
