#include "stages/checkpoint/consolidate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>

#include "stages/base/error.hpp"
#include "stages/checkpoint/single_file.hpp"
#include "stages/checkpoint/tied.hpp"
#include "stages/checkpoint/together.hpp"
#include "stages/checkpoint/write_values.hpp"

namespace zerolab {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kWriter = 0;

Buffer buffer_for(Runtime& runtime, const Parameter& parameter) {
  return runtime.ledger.allocate(parameter.numel() * size_of(runtime.settings.dtype),
                                 Category::checkpoint, parameter.name());
}

/// Where the elements of every parameter are, over all ranks: the bounds of a Run for each.
std::vector<std::vector<Index>> bounds_of_all(Runtime& runtime, Engine& engine) {
  const auto parameters = engine.model().parameters().size();
  std::vector<Index> mine(parameters, 0);
  for (const OwnedSlice& slice : engine.stage().owned()) {
    mine[static_cast<std::size_t>(slice.parameter->id())] = slice.range.size();
  }
  std::vector<std::vector<Index>> bounds(parameters, {0});
  for (const auto& bytes : share(runtime.comm, std::as_bytes(std::span(mine)), "who owns what")) {
    std::vector<Index> theirs(parameters);
    std::memcpy(theirs.data(), bytes.data(), bytes.size());
    for (std::size_t i = 0; i < parameters; ++i) bounds[i].push_back(bounds[i].back() + theirs[i]);
  }
  return bounds;
}

/// One consolidation on one rank.
class Consolidation {
 public:
  Consolidation(Runtime& runtime, Engine& engine) : runtime_(runtime), engine_(engine) {
    for (const OwnedSlice& slice : engine_.stage().owned()) {
      owned_[slice.parameter] = slice.weights;
    }
  }

  void write(SingleFile* file) {
    const std::vector<std::vector<Index>> bounds = bounds_of_all(runtime_, engine_);
    for (const Parameter& parameter : engine_.model().parameters()) {
      if (parameter.numel() == 0) continue;
      if (parameter.status() == Status::available) {
        if (file != nullptr)
          write_values(runtime_.device, parameter.data, parameter.numel(), *file);
      } else {
        gather_and_write(parameter, bounds[static_cast<std::size_t>(parameter.id())], file);
      }
    }
  }

 private:
  void gather_and_write(const Parameter& parameter, const std::vector<Index>& bounds,
                        SingleFile* file) {
    const Dtype dtype = runtime_.settings.dtype;
    const auto found = owned_.find(&parameter);
    const Values mine = found == owned_.end() ? Values(nullptr, dtype) : found->second;
    Buffer buffer;
    if (file != nullptr) buffer = buffer_for(runtime_, parameter);
    const Run whole{buffer.values(dtype), bounds};
    if (file != nullptr && mine) runtime_.device.copy(whole.data, mine, bounds[kWriter + 1]);
    Pending pending = gather(runtime_.comm, mine, whole, kWriter, parameter.name());
    runtime_.comm.wait(pending);
    if (file != nullptr) {
      write_values(runtime_.device, whole.data, parameter.numel(), *file);
    }
  }

  Runtime& runtime_;
  Engine& engine_;
  std::map<const Parameter*, Values> owned_;
};

SafetensorsWriter header_for(Engine& engine, Dtype dtype, const nlohmann::ordered_json& run) {
  SafetensorsWriter header = header_of_model(tied_names(engine.model()), run);
  for (const Parameter& parameter : engine.model().parameters()) {
    header.add(parameter.name(), dtype, parameter.shape());
  }
  return header;
}

}  // namespace

void expect_may_consolidate(const Settings& settings) {
  if (settings.zero.stage != 3 || settings.zero.gather_16bit_weights_on_model_save) return;
  throw Error(Code::not_gathered_on_save,
              "in stage 3 no rank has whole weights that it could save as one file",
              "set zero_optimization.stage3_gather_16bit_weights_on_model_save, and rank 0 gathers "
              "them one after the other, which takes memory for the largest; or save a checkpoint "
              "with --save, which takes none, and merge it afterwards: zerolab merge");
}

void rehearse_consolidation(Runtime& runtime, Engine& engine) {
  if (runtime.rank() != kWriter) return;
  const ParameterSet& parameters = engine.model().parameters();
  const Parameter* largest = nullptr;
  for (const Parameter& parameter : parameters) {
    if (parameter.status() == Status::available) continue;
    if (largest == nullptr || parameter.numel() > largest->numel()) largest = &parameter;
  }
  if (largest != nullptr) buffer_for(runtime, *largest);
}

ConsolidateReport consolidate(Runtime& runtime, Engine& engine, const std::filesystem::path& file,
                              const nlohmann::ordered_json& run) {
  expect_may_consolidate(runtime.settings);
  const Phase before = runtime.recorder.phase();
  runtime.recorder.set_phase(Phase::save);
  const Clock::time_point start = Clock::now();
  const bool writes = runtime.rank() == kWriter;
  std::optional<SingleFile> out;
  together(runtime.comm, "file of all weights", [&]() -> std::string {
    if (writes) out.emplace(file, header_for(engine, runtime.settings.dtype, run));
    return {};
  });
  Consolidation(runtime, engine).write(out ? &*out : nullptr);
  ConsolidateReport report;
  together(runtime.comm, "file of all weights", [&]() -> std::string {
    if (out) report.bytes = out->finish();
    return {};
  });
  report.seconds = seconds_since(start);
  const std::string path = file.string();
  runtime.recorder.record(CheckpointEvent{"consolidate", path, report.bytes, writes ? 1 : 0,
                                          report.seconds, out ? out->write_seconds() : 0,
                                          out ? out->sync_seconds() : 0, 0});
  runtime.recorder.set_phase(before);
  return report;
}

}  // namespace zerolab
