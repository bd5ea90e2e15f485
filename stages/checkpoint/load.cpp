#include "stages/checkpoint/load.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "stages/base/error.hpp"
#include "stages/base/nearest.hpp"
#include "stages/checkpoint/tied.hpp"
#include "stages/checkpoint/weights_file.hpp"

namespace zerolab {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void mismatch(const std::string& what, const std::string& way_out) {
  throw Error(Code::checkpoint_mismatch, what, way_out);
}

/// Elements of a state into device memory, converted to its type.
void fill(Runtime& runtime, StateSource& source, const std::string& parameter,
          std::string_view state, Range range, Values out) {
  source.read(
      parameter, state, range, [&](Range piece, Dtype dtype, std::span<const std::byte> bytes) {
        const Values there = out + (piece.begin - range.begin);
        const auto upload = [&](std::span<const std::byte> values) {
          runtime.device.upload(there.data(), values.data(), static_cast<Index>(values.size()));
        };
        if (dtype == out.dtype()) return upload(bytes);
        upload(converted(bytes, dtype, out.dtype()));
      });
}

// Whole on every rank, and nobody sends it: each reads all of it.
bool whole_and_frozen(const Parameter& parameter) {
  return !parameter.requires_grad() && parameter.status() == Status::available;
}

void expect_same_moments(const Manifest& manifest, const Settings& settings,
                         const std::string& from) {
  const std::vector<std::string> here = moment_names(settings.optimizer);
  if (here == manifest.moments) return;
  const auto named = [](const std::vector<std::string>& names) {
    return names.empty() ? std::string("no moments") : fmt::format("{}", fmt::join(names, ", "));
  };
  mismatch(fmt::format("{} has {}, and the optimizer of this run keeps {}", from,
                       named(manifest.moments), named(here)),
           "resume with the optimizer that it was trained with, or begin anew with its weights: "
           "zerolab merge, then zerolab import");
}

void expect_trained(const ParameterSet& parameters, const Manifest& manifest,
                    const std::string& from) {
  std::vector<std::string> names;
  for (const Parameter& parameter : parameters) {
    const SavedParameter& saved = manifest.parameters[manifest.find(parameter.name())];
    if (parameter.requires_grad() && !saved.requires_grad) names.push_back(saved.name);
  }
  if (names.empty()) return;
  mismatch(fmt::format("{} has no moments of {}, frozen when it was saved", from,
                       fmt::join(names, ", ")),
           fmt::format("resume with --freeze {}, or begin anew with its weights: zerolab merge, "
                       "then zerolab import",
                       fmt::join(names, ",")));
}

// Whether the states here are the saved ones, bit for bit.
bool comparable(const ParameterSet& parameters, const Manifest& manifest, Dtype dtype) {
  if (dtype == manifest.dtype) {
    return std::all_of(parameters.begin(), parameters.end(), [&](const Parameter& each) {
      return each.requires_grad() == manifest.parameters[manifest.find(each.name())].requires_grad;
    });
  }
  return false;  // frozen weights are rounded anew
}

void expect_same_hashes(Engine& engine, const Manifest& manifest, const Checkpoint& checkpoint) {
  const std::vector<std::uint64_t> hashes = engine.state_hashes();
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    if (hashes[i] == manifest.hashes.at(i)) continue;
    throw Error(Code::checkpoint_damaged,
                fmt::format("the {} loaded from {} have the hash {:016x}, those saved had {:016x}",
                            i == 0 ? std::string("weights") : manifest.moments[i - 1],
                            checkpoint.folder().string(), hashes[i], manifest.hashes[i]),
                "this is a defect of zerolab, or of the machine: please report it with the "
                "checkpoint");
  }
}

LoadReport told(Runtime& runtime, const std::string& path, const StateSource& source,
                Clock::time_point start) {
  const double seconds = seconds_since(start);
  runtime.recorder.record(CheckpointEvent{"load", path, source.bytes_read(), source.files_opened(),
                                          seconds, seconds, 0, 0});
  return {source.bytes_read(), source.files_opened(), seconds};
}

void expect_same_model(const ParameterSet& parameters, const std::vector<SavedParameter>& saved,
                       const std::string& from) {
  std::vector<std::string> names;
  names.reserve(saved.size());
  for (const SavedParameter& each : saved) names.push_back(each.name);
  const auto way_out = "name the model that it is of with --model";
  std::size_t found = 0;
  for (const Parameter& parameter : parameters) {
    const auto its = std::find_if(saved.begin(), saved.end(), [&](const SavedParameter& each) {
      return each.name == parameter.name();
    });
    if (its == saved.end()) {
      mismatch(fmt::format("{} has no '{}', which the model has{}", from, parameter.name(),
                           did_you_mean(parameter.name(), names)),
               way_out);
    }
    if (its->shape != parameter.shape()) {
      mismatch(fmt::format("{} has '{}' {}, the model has {}", from, parameter.name(),
                           to_string(its->shape), to_string(parameter.shape())),
               way_out);
    }
    ++found;
  }
  if (found == saved.size()) return;
  for (const Parameter& parameter : parameters) std::erase(names, parameter.name());
  mismatch(fmt::format("{} has '{}', which the model has not", from, names.front()), way_out);
}

void load_parameters(Runtime& runtime, Engine& engine, StateSource& source,
                     const std::function<std::string_view(const Parameter&)>& exact_state) {
  for (const OwnedSlice& slice : engine.stage().owned()) {
    const Parameter& parameter = *slice.parameter;
    if (whole_and_frozen(parameter)) continue;
    const bool rounded = slice.master != nullptr && slice.master != slice.weights.data();
    fill(runtime, source, parameter.name(), exact_state(parameter), slice.range,
         rounded ? Values(slice.master) : slice.weights);
    if (rounded) runtime.device.copy(slice.weights, slice.master, slice.range.size());
  }
  for (const Parameter& parameter : engine.model().parameters()) {
    if (!whole_and_frozen(parameter)) continue;
    fill(runtime, source, parameter.name(), exact_state(parameter), {0, parameter.numel()},
         parameter.data);
  }
  engine.stage().publish();
}

}  // namespace

LoadReport load_weights(Runtime& runtime, Engine& engine, const Checkpoint& checkpoint) {
  const Clock::time_point start = Clock::now();
  const Manifest& manifest = checkpoint.manifest();
  const std::string from = checkpoint.folder().string();
  expect_same_model(engine.model().parameters(), manifest.parameters, from);
  StateReader reader(checkpoint);
  load_parameters(runtime, engine, reader, [&](const Parameter& parameter) {
    const SavedParameter& saved = manifest.parameters[manifest.find(parameter.name())];
    // Where nothing is trained the rounded weights will do, if they are of the same type.
    const bool as_they_are = !parameter.requires_grad() && runtime.settings.dtype == manifest.dtype;
    return as_they_are ? kWeights : manifest.exact_state(saved);
  });
  return told(runtime, from, reader, start);
}

LoadReport load_weights(Runtime& runtime, Engine& engine, const std::string& file) {
  const Clock::time_point start = Clock::now();
  WeightsFile weights(file, tied_names(engine.model()));
  expect_same_model(engine.model().parameters(), weights.parameters(),
                    weights.of_gpt2() ? file + ", read as a file of GPT-2," : file);
  load_parameters(runtime, engine, weights, [](const Parameter&) { return kWeights; });
  return told(runtime, file, weights, start);
}

LoadReport load_checkpoint(Runtime& runtime, Engine& engine, const Checkpoint& checkpoint) {
  const Clock::time_point start = Clock::now();
  const Manifest& manifest = checkpoint.manifest();
  const ParameterSet& parameters = engine.model().parameters();
  const std::string from = checkpoint.folder().string();
  expect_same_model(parameters, manifest.parameters, from);
  expect_same_moments(manifest, runtime.settings, from);
  expect_trained(parameters, manifest, from);

  StateReader reader(checkpoint);
  load_parameters(runtime, engine, reader, [&](const Parameter& parameter) {
    return manifest.exact_state(manifest.parameters[manifest.find(parameter.name())]);
  });
  for (std::size_t i = 0; i < manifest.moments.size(); ++i) {
    for (const OwnedSlice& slice : engine.stage().owned()) {
      if (!slice.parameter->requires_grad()) continue;
      fill(runtime, reader, slice.parameter->name(), manifest.moments[i], slice.range,
           slice.moments[i]);
    }
  }
  TrainingProgress progress = manifest.progress;
  if (manifest.dtype != Dtype::fp16) progress.scaler = engine.progress().scaler;  // it had none
  engine.resume(progress);
  if (comparable(parameters, manifest, runtime.settings.dtype)) {
    expect_same_hashes(engine, manifest, checkpoint);
  }
  return told(runtime, from, reader, start);
}

}  // namespace zerolab
