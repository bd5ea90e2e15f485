#pragma once

#include <string>
#include <vector>

#include "stages/model/module.hpp"

namespace own {

/// y[i, j] = w[j] x[i, j]: every feature has a weight. [rows, width] -> [rows, width].
class Scale : public zerolab::Module {
 public:
  Scale(zerolab::ParameterSet& parameters, std::string name, zerolab::Index width);

 protected:
  zerolab::Tensor do_forward(const zerolab::Tensor& input) override;
  zerolab::Tensor do_backward(const zerolab::Tensor& output_gradient) override;

 private:
  zerolab::Parameter& weight_;
  std::vector<zerolab::Tensor> inputs_;  // one for every forward that backward has not undone
};

}  // namespace own
