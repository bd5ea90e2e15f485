#include "stages/engine/gathered_parameters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "stages/base/error.hpp"
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
  if (!modifier_rank_) before_ = hashes();
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

std::vector<std::uint64_t> GatheredParameters::hashes() const {
  std::vector<std::uint64_t> result;
  result.reserve(parameters_.size());
  for (const Parameter* parameter : parameters_) {
    result.push_back(runtime_.device.hash(static_cast<std::uint64_t>(parameter->id()), 0,
                                          parameter->data, parameter->numel()));
  }
  return result;
}

void GatheredParameters::share_what_was_written() {
  for (Parameter* parameter : parameters_) {
    if (parameter->numel() == 0) continue;
    const std::span<float> values(parameter->data, static_cast<std::size_t>(parameter->numel()));
    Pending pending = broadcast(runtime_.comm, std::as_writable_bytes(values), *modifier_rank_,
                                parameter->name());
    runtime_.comm.wait(pending);
    stage_.take_over(*parameter);
  }
}

// Ranks that raise alone would leave the others waiting, so they tell each other what they found.
void GatheredParameters::check_that_nobody_wrote() const {
  if (parameters_.empty()) return;
  const std::vector<std::uint64_t> now = hashes();
  std::vector<std::byte> written(parameters_.size());
  for (std::size_t i = 0; i < now.size(); ++i) written[i] = std::byte{now[i] != before_[i]};
  const auto all = share(runtime_.comm, written, "writes to gathered parameters");
  std::string lines;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    std::vector<std::size_t> ranks;
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      if (all[rank][i] != std::byte{0}) ranks.push_back(rank);
    }
    if (ranks.empty()) continue;
    lines += fmt::format("\n  '{}' by rank {}", parameters_[i]->name(), fmt::join(ranks, ", "));
  }
  if (lines.empty()) return;
  throw Error(Code::edit_without_owner,
              "gathered parameters were written, though their scope was opened for reading" + lines,
              "name the rank whose values everybody is to get: GatheredParameters(..., "
              "modifier_rank)");
}

std::span<float> values_in_scope(const Runtime& runtime, Parameter& parameter) {
  if (!parameter.in_scope()) {
    throw Error(Code::parameter_not_available,
                fmt::format("parameter '{}' on rank {} is read or written from outside of the "
                            "model, and no gather scope holds it",
                            parameter.name(), runtime.rank()),
                "make a GatheredParameters scope around it on every rank, and name the rank that "
                "writes");
  }
  return {parameter.data, static_cast<std::size_t>(parameter.numel())};
}

}  // namespace zerolab
