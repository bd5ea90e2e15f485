#pragma once

#include <string>
#include <vector>

#include "stages/model/module.hpp"

namespace zerolab {

/// y = x W^T + b: [rows, in] -> [rows, out]. W is [out, in].
class Linear : public Module {
 public:
  Linear(ParameterSet& parameters, std::string name, Index in, Index out, Initial initial);

 protected:
  Tensor do_forward(const Tensor& input) override;
  Tensor do_backward(const Tensor& output_gradient) override;

 private:
  Index in_, out_;
  Parameter& weight_;
  Parameter& bias_;
  std::vector<Tensor> inputs_;
};

/// y = x E^T with a table E that an embedding owns: the tied output head, [rows, width] ->
/// [rows, vocabulary]. It reads a foreign parameter, so it must be registered as external.
class TiedHead : public Module {
 public:
  TiedHead(std::string name, Parameter& table);

 protected:
  Tensor do_forward(const Tensor& input) override;
  Tensor do_backward(const Tensor& output_gradient) override;

 private:
  Index vocabulary_, width_;
  Parameter& table_;
  std::vector<Tensor> inputs_;
};

/// One row of a table for every token: int32 [...] -> [count, width].
class Embedding : public Module {
 public:
  Embedding(ParameterSet& parameters, std::string name, Index vocabulary, Index width,
            Initial initial);

  Parameter& table() { return table_; }

 protected:
  Tensor do_forward(const Tensor& input) override;
  Tensor do_backward(const Tensor& output_gradient) override;

 private:
  Index vocabulary_, width_;
  Parameter& table_;
  std::vector<Tensor> inputs_;
};

/// Layer normalisation over the last dimension (Ba, Kiros, Hinton, 2016), epsilon 1e-5.
class LayerNorm : public Module {
 public:
  LayerNorm(ParameterSet& parameters, std::string name, Index width);

 protected:
  Tensor do_forward(const Tensor& input) override;
  Tensor do_backward(const Tensor& output_gradient) override;

 private:
  struct Kept {
    Tensor input, mean, variance;
  };
  static constexpr float kEpsilon = 1e-5F;
  Parameter& gain_;
  Parameter& bias_;
  std::vector<Kept> kept_;
};

/// The tanh approximation of GELU; no weights.
class Gelu : public Module {
 public:
  using Module::Module;

 protected:
  Tensor do_forward(const Tensor& input) override;
  Tensor do_backward(const Tensor& output_gradient) override;

 private:
  std::vector<Tensor> inputs_;
};

}  // namespace zerolab
