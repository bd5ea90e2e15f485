#include "stages/zero3/gather_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "stages/zero3/persistence.hpp"

namespace zerolab {
namespace {

struct FetchSetting {
  const char* name;
  Index ZeroSettings::*value;
};
constexpr std::array kFetchSettings{
    FetchSetting{"stage3_max_live_parameters", &ZeroSettings::max_live_parameters},
    FetchSetting{"stage3_max_reuse_distance", &ZeroSettings::max_reuse_distance},
    FetchSetting{"stage3_model_persistence_threshold", &ZeroSettings::model_persistence_threshold},
    FetchSetting{"stage3_param_persistence_threshold", &ZeroSettings::param_persistence_threshold},
    FetchSetting{"stage3_prefetch_bucket_size", &ZeroSettings::prefetch_bucket_size}};

}  // namespace

FetchLimits fetch_limits(const ZeroSettings& zero) {
  return {zero.prefetch_bucket_size, zero.max_live_parameters, zero.max_reuse_distance};
}

GatherMemory::GatherMemory(Runtime& runtime, const Coordinator& coordinator,
                           const Gathered& gathered)
    : runtime_(runtime), coordinator_(coordinator), gathered_(gathered), since_(runtime.ledger) {}

std::vector<Setting> GatherMemory::settings() const {
  std::vector<Setting> result;
  result.reserve(kFetchSettings.size());
  for (const FetchSetting& each : kFetchSettings) {
    result.push_back({.name = fmt::format("zero_optimization.{}", each.name),
                      .value = runtime_.settings.zero.*each.value,
                      .extreme = 0});
  }
  return result;
}

// Under other limits other parameters would have been whole earlier in this pass: there must have
// been room for that, too. If deciding over again does not come to what is there, its word on what
// might have been is worth nothing.
Index GatherMemory::bytes_at(std::size_t index, Index value, const Held& held) const {
  ZeroSettings other = runtime_.settings.zero;
  if (gathered_bytes(other).back() != held.bytes) return held.bytes;
  other.*kFetchSettings[index].value = value;
  const std::vector<Index> bytes = gathered_bytes(other);
  Index highest = 0;
  for (std::size_t i = 1; i < beside_.size(); ++i) {
    highest = std::max(highest, bytes[i] + beside_[i]);
  }
  if (!gathered_.asked_for()) highest = std::max(highest, bytes.back() + beside());
  return std::max(bytes.back(), highest - held.beside);
}

// At the beginning of this pass, and after each of its events.
std::vector<Index> GatherMemory::gathered_bytes(const ZeroSettings& settings) const {
  std::vector<Index> result;
  coordinator_.decide_again(fetch_limits(settings),
                            persistent_parameters(parameters_->sizes(), settings),
                            gathered_.asked_for(), [&](const Coordinator::Live& live) {
                              Index bytes = 0;
                              for (const Parameter& each : *parameters_) {
                                if (live[static_cast<std::size_t>(each.id())])
                                  bytes += gathered_.bytes_of(each);
                              }
                              result.push_back(bytes);
                            });
  return result;
}

// What the last one has gathered stays until now.
void GatherMemory::begin_event() {
  if (!coordinator_.in_pass()) beside_.clear();
  beside_.push_back(beside());
}

}  // namespace zerolab
