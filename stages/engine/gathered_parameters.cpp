#include "stages/engine/gathered_parameters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "stages/base/error.hpp"
#include "stages/engine/replicas.hpp"
#include "stages/engine/states.hpp"
#include "stages/model/parameter_state.hpp"

namespace zerolab {

GatheredParameters::GatheredParameters(Runtime& runtime, Stage& stage,
                                       std::vector<Parameter*> parameters,
                                       std::optional<int> modifier_rank)
    : runtime_(runtime),
      stage_(stage),
      parameters_(std::move(parameters)),
      modifier_rank_(modifier_rank),
      exceptions_(std::uncaught_exceptions()) {
  if (modifier_rank_ && (*modifier_rank_ < 0 || *modifier_rank_ >= runtime_.ranks())) {
    throw Error(Code::usage,
                fmt::format("rank {} is to write gathered parameters, but there are {} ranks",
                            *modifier_rank_, runtime_.ranks()),
                fmt::format("name a rank from 0 to {}", runtime_.ranks() - 1));
  }
  // The same order on every rank, whatever order they were given in.
  std::sort(parameters_.begin(), parameters_.end(),
            [](const Parameter* a, const Parameter* b) { return a->id() < b->id(); });
  parameters_.erase(std::unique(parameters_.begin(), parameters_.end()), parameters_.end());
  std::size_t begun = 0;
  try {
    for (; begun < parameters_.size(); ++begun) {
      ParameterState::begin_scope(*parameters_[begun], runtime_.recorder);
    }
    stage_.gather(parameters_);
  } catch (...) {
    for (std::size_t i = 0; i < begun; ++i) {
      ParameterState::end_scope(*parameters_[i], runtime_.recorder);
    }
    throw;
  }
  if (!modifier_rank_) before_ = hashes_of(runtime_, parameters_);
}

GatheredParameters::~GatheredParameters() noexcept(false) {
  if (std::uncaught_exceptions() > exceptions_) {
    try {
      end();
    } catch (...) {  // what is passing by is what has to be told
    }
    return;
  }
  try {
    if (modifier_rank_) {
      share_what_was_written();
    } else {
      check_that_nobody_wrote();
    }
  } catch (...) {
    end();
    throw;
  }
  end();
}

void GatheredParameters::end() {
  for (Parameter* parameter : parameters_) {
    ParameterState::end_scope(*parameter, runtime_.recorder);
  }
  stage_.let_go(parameters_);
}

void GatheredParameters::share_what_was_written() {
  for (Parameter* parameter : parameters_) {
    if (parameter->numel() == 0) continue;
    Pending pending = broadcast(runtime_.comm, bytes_of(parameter->data, parameter->numel()),
                                *modifier_rank_, parameter->name());
    runtime_.comm.wait(pending);
    stage_.take_over(*parameter);
  }
  for (const OwnedSlice& slice : stage_.owned()) {
    if (slice.master == nullptr || slice.master == slice.weights.data()) continue;
    runtime_.device.follow(slice.weights, slice.range.size(), slice.master);
  }
}

// Ranks that raise alone would leave the others waiting, so they tell each other what they found.
void GatheredParameters::check_that_nobody_wrote() const {
  std::vector<std::uint64_t> written = hashes_of(runtime_, parameters_);
  for (std::size_t i = 0; i < written.size(); ++i) written[i] ^= before_[i];
  const std::string lines =
      ranks_where(runtime_, parameters_, written, "by",
                  [](std::uint64_t change, std::uint64_t /*of rank 0*/) { return change != 0; });
  if (lines.empty()) return;
  throw Error(Code::edit_without_owner,
              "gathered parameters were written, though their scope was opened for reading" + lines,
              "name the rank whose values everybody is to get: GatheredParameters(..., "
              "modifier_rank)");
}

namespace {

void expect_scope(const Runtime& runtime, const Parameter& parameter) {
  if (parameter.in_scope()) return;
  throw Error(Code::parameter_not_available,
              fmt::format("parameter '{}' on rank {} is read or written from outside of the "
                          "model, and no gather scope holds it",
                          parameter.name(), runtime.rank()),
              "make a GatheredParameters scope around it on every rank, and name the rank that "
              "writes");
}

}  // namespace

std::vector<float> read_in_scope(Runtime& runtime, const Parameter& parameter) {
  expect_scope(runtime, parameter);
  return floats_on_host(runtime, parameter.data, parameter.numel());
}

void write_in_scope(Runtime& runtime, Parameter& parameter, const std::vector<float>& values) {
  expect_scope(runtime, parameter);
  if (static_cast<Index>(values.size()) != parameter.numel()) {
    throw Error(
        Code::usage,
        fmt::format("{} values are written to parameter '{}' {}, which has {}", values.size(),
                    parameter.name(), to_string(parameter.shape()), parameter.numel()),
        "give a value for every element, in row-major order");
  }
  const Index bytes = parameter.numel() * size_of(Dtype::fp32);
  const Buffer buffer =
      runtime.ledger.allocate(bytes, Category::workspace, parameter.name() + " (as fp32)");
  runtime.device.upload(buffer.data(), values.data(), bytes);
  runtime.device.copy(parameter.data, buffer.floats(), parameter.numel());
}

}  // namespace zerolab
