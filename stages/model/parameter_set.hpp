#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "stages/model/parameter.hpp"

namespace zerolab {

/// The parameters of a model in order of registration; ids are positions in this order.
class ParameterSet {
 public:
  /// Throws Error (Code::usage) when there is one of this name already.
  Parameter& add(std::string name, Shape shape, Initial initial);

  std::size_t size() const { return parameters_.size(); }
  auto begin() { return parameters_.begin(); }
  auto end() { return parameters_.end(); }
  auto begin() const { return parameters_.begin(); }
  auto end() const { return parameters_.end(); }
  Parameter& operator[](std::size_t i) { return parameters_[i]; }
  /// Throws Error (Code::usage) when there is none of this name.
  Parameter& at(std::string_view name);

  /// Takes a parameter, or all of a module and those below it, out of the training. Throws Error
  /// (Code::usage) when there is none of this name, or when the model has its states already.
  void freeze(std::string_view name);
  /// From now on nothing can be frozen: memory for gradients and moments is taken by it.
  void seal() { sealed_ = true; }

  std::vector<Index> sizes() const;
  /// The same with 0 for the frozen ones, or for the others.
  std::vector<Index> trainable_sizes() const { return sizes_where(true); }
  std::vector<Index> frozen_sizes() const { return sizes_where(false); }
  /// Elements of all parameters; a tied parameter is one.
  Index numel() const;
  Index trainable_numel() const;

 private:
  std::vector<Index> sizes_where(bool requires_grad) const;

  std::deque<Parameter> parameters_;  // addresses stay
  bool sealed_ = false;
};

}  // namespace zerolab
